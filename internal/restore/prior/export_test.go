package prior

import (
	"context"
	"path/filepath"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxruntime"
)

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

// TryAgainst tries the exported form against the CPU's predictions times a factor.
func (p *Prior) TryAgainst(ctx context.Context, rt *onnxruntime.Runtime, factor float32) (Trial, error) {
	w := Workload{Images: 1, Height: 16, Width: 16, Precision: onnxruntime.FP32}
	want, err := p.expected(ctx, rt, w)
	for _, y := range want {
		for i := range y {
			y[i] *= factor
		}
	}
	return p.try(ctx, rt, w, Exported, want), err
}

// OpenMapped is Open for the file of a prior whose large weights stay in its data files, whatever their size.
func OpenMapped(path string) (*Prior, error) {
	data, err := modelfile.ReadMapped(path)
	if err != nil {
		return nil, err
	}
	return load(path, data, filepath.Dir(path))
}

// Network is the network as it is in the file.
func (p *Prior) Network() *modelfile.Model { return p.file }
