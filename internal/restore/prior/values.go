package prior

// Values returns the number of values that the network computes for one image or latent of a height and width in the prior's space:
// those that a gradient through it keeps. Values of unknown shape do not count. It is 0 for a shape that the network does not take.
func (p *Prior) Values(height, width int) float64 {
	key := [2]int{height, width}
	if n, ok := p.values.Load(key); ok {
		return n.(float64)
	}
	sum := 0.0
	types, err := p.file.Types(map[string][]int{p.x.Name: {1, p.channels(), height, width}, p.t.Name: {1}})
	if err == nil {
		delete(types, p.x.Name)
		delete(types, p.t.Name)
		for _, v := range types {
			sum += v.Count()
		}
	}
	p.values.Store(key, sum)
	return sum
}
