package onnx

// WatchRules calls seen with the operation of each gradient rule that is used from now on, and returns all operations with a
// rule.
func WatchRules(seen func(op string)) (all []string) {
	for _, family := range families() {
		for op, r := range family {
			all = append(all, op)
			family[op] = func(g *Graph, n *node, k int, dy []Value) (Value, error) {
				dx, err := r(g, n, k, dy)
				if err == nil {
					seen(op)
				}
				return dx, err
			}
		}
	}
	return all
}
