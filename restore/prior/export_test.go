package prior

import "ddiff/restore/onnx/modelfile"

// Difference is the largest difference of predictions as a share of the largest.
var Difference = difference

// Rewrite changes the network of a prior in place.
func (p *Prior) Rewrite(f func(*modelfile.Model) *modelfile.Model) { p.file = f(p.file) }

// Nodes counts the network's nodes of an operation.
func (p *Prior) Nodes(op string) (n int) {
	for _, node := range p.file.Proto().Graph.Node {
		if node.OpType == op {
			n++
		}
	}
	return n
}
