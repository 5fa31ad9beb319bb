package solver

import (
	"context"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/prior"
	"ddiff/restore/onnx"
)

// network evaluates the score network of a divided step at tiles, and fuses the predictions. The fusion of an image adds its tiles in their
// order, so that the result does not depend on the number of tiles per call. An image that is not divided is one tile.
type network struct {
	*prior.Network // of the tiles of a call
	grid           *prior.Grid
	images         *onnxruntime.Tensor // x_t
}

// newNetwork compiles the network of a divided step.
func (s *Solver) newNetwork() (*network, error) {
	dims := s.run.SpaceDims(s.n)
	grid, batch := s.run.Grid(), s.n
	height, width := s.run.Operator.Image.Height, s.run.Operator.Image.Width
	var err error
	if grid != nil {
		batch = min(s.build.tiles(s.rt), s.n*grid.Len())
		height, width = grid.TileHeight(), grid.TileWidth()
	} else if grid, err = prior.NewGrid(prior.Tiling{}, dims[2], dims[3], 1); err != nil {
		return nil, err
	}
	p, err := s.run.Prior.InForm(s.rt, s.build.Form)
	if err != nil {
		return nil, err
	}
	n, err := p.Compile(s.rt, batch, height, width, s.build.Precision)
	if err != nil {
		return nil, err
	}
	x, err := onnxruntime.NewTensor(onnx.Float, dims...)
	if err != nil {
		n.Close()
		return nil, err
	}
	return &network{Network: n, grid: grid, images: x}, nil
}

// arguments are the tensors from which predict reads: x_t [N, C, H, W] and the time index.
func (n *network) arguments() []*onnxruntime.Tensor {
	return []*onnxruntime.Tensor{n.images, n.T}
}

// predict writes the prediction for all images, in the shape of x_t. It checks ctx before each call of the network, and calls watch after it with the share
// of the tiles.
func (n *network) predict(ctx context.Context, into []float32, watch func(share float64)) error {
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
		watch(float64(last) / float64(total))
	}
	return nil
}

func (n *network) close() {
	n.Close()
	n.images.Close()
}
