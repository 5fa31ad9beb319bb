package modelfile

import (
	"cmp"
	"fmt"

	"ddiff/restore/onnx/onnxpb"
)

// leastInputs are the numbers of inputs without which an operation means nothing, of those whose inputs the package reads by position.
var leastInputs = func() map[string]int {
	out := map[string]int{"InstanceNormalization": 3, "Reshape": 2, "Mul": 2, "Add": 2, "Where": 3, "Sigmoid": 1, "Cast": 1}
	for op := range reduced {
		out[op] = 1
	}
	return out
}()

// checkNodes returns an error that wraps ErrModel for a node of the main graph without a named output, or with fewer inputs than its
// operation must have.
func checkNodes(g *onnxpb.GraphProto) error {
	for _, n := range g.Node {
		if cmp.Or(n.Output...) == "" {
			return fmt.Errorf("read node %s: %w: it has no output", nodeName(n), ErrModel)
		}
		if least := leastInputs[n.OpType]; len(n.Input) < least {
			return fmt.Errorf("read node %s: %w: it has %d inputs, want %d", nodeName(n), ErrModel, len(n.Input), least)
		}
	}
	return nil
}
