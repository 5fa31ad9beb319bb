package solver

import (
	"context"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/prior"
	"ddiff/restore/tile"
)

// network evaluates the score network of a divided step.
type network interface {
	// arguments are the tensors from which predict reads: x_t [N, C, H, W] and the time index.
	arguments() []*onnxruntime.Tensor
	// predict writes the prediction for all images, in the shape of x_t.
	predict(ctx context.Context, into []float32) error
	close()
}

// newNetwork compiles the network of a divided step for n images.
func (s *Solver) newNetwork() (network, error) {
	image := s.run.Operator.Image
	grid := s.run.Grid()
	if grid == nil {
		n, err := s.run.Prior.Compile(s.rt, s.n, image.Height, image.Width, s.build.Precision)
		if err != nil {
			return nil, err // not a nil pointer in an interface
		}
		return wholeNetwork{n}, nil
	}
	batch := min(s.build.tiles(s.rt), s.n*grid.Len())
	n, err := s.run.Prior.Compile(s.rt, batch, grid.TileHeight(), grid.TileWidth(), s.build.Precision)
	if err != nil {
		return nil, err
	}
	x, err := onnxruntime.NewTensor(onnx.Float, s.run.SpaceDims(s.n)...)
	if err != nil {
		n.Close()
		return nil, err
	}
	return &tiledNetwork{Network: n, grid: grid, images: x}, nil
}

// wholeNetwork evaluates the network at whole images.
type wholeNetwork struct{ *prior.Network }

func (n wholeNetwork) arguments() []*onnxruntime.Tensor { return []*onnxruntime.Tensor{n.X, n.T} }

func (n wholeNetwork) predict(ctx context.Context, into []float32) error {
	if err := n.Run(ctx); err != nil {
		return err
	}
	copy(into, n.Y.F32)
	return nil
}

func (n wholeNetwork) close() { n.Close() }

// tiledNetwork evaluates the network at tiles, and fuses the predictions. The fusion of an image adds its tiles in their order, so that the
// result does not depend on the number of tiles per call.
type tiledNetwork struct {
	*prior.Network // of the tiles of a call
	grid           *tile.Grid
	images         *onnxruntime.Tensor // x_t
}

func (n *tiledNetwork) arguments() []*onnxruntime.Tensor { return []*onnxruntime.Tensor{n.images, n.T} }

// predict checks ctx before each call of the network.
func (n *tiledNetwork) predict(ctx context.Context, into []float32) error {
	clear(into)
	batch, image := n.X.Dims()[0], len(into)/n.images.Dims()[0]
	size := len(n.X.F32) / batch
	total := len(into) / image * n.grid.Len()
	of := func(k int, v []float32) []float32 { return v[k/n.grid.Len()*image:][:image] }
	for first := 0; first < total; first += batch {
		last := min(first+batch, total)
		for k := first; k < last; k++ {
			n.grid.Cut(n.X.F32[(k-first)*size:][:size], of(k, n.images.F32), k%n.grid.Len())
		}
		if err := n.Run(ctx); err != nil {
			return err
		}
		for k := first; k < last; k++ {
			n.grid.Fuse(of(k, into), n.Y.F32[(k-first)*size:][:size], k%n.grid.Len())
		}
	}
	return nil
}

func (n *tiledNetwork) close() {
	n.Close()
	n.images.Close()
}
