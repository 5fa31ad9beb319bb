package prior

import (
	"context"
	"fmt"
	"time"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/restore/onnx"
)

// Network is a prior's score network alone, without a solver, compiled for one batch size and image size.
// Callers write X and T, call Run, and read Y.
type Network struct {
	X *onnxruntime.Tensor // images or latents of the prior's space, float [N, C, H, W]
	T *onnxruntime.Tensor // time index of the whole batch, int64 [1]
	Y *onnxruntime.Tensor // prediction, with the shape of X

	session *onnxruntime.Session
	binding *onnxruntime.Binding // of a form with a graph, or on the device, else nil
	x       *onnxruntime.Tensor  // read instead of X, see StayOnDevice
}

// Compile builds the network for n images of height×width pixels, in a precision of the runtime. The caller must close it.
func (p *Prior) Compile(rt *onnxruntime.Runtime, n, height, width int, precision onnxruntime.Precision) (*Network, error) {
	if rt.Divides() {
		return p.compile(rt, p.fused(), n, height, width, precision)
	}
	return p.compile(rt, p.file, n, height, width, precision)
}

// compile is Compile with one form of the network.
func (p *Prior) compile(rt *onnxruntime.Runtime, form *modelfile.Model, images, height, width int, precision onnxruntime.Precision) (n *Network, err error) {
	if err := p.Takes(height, width, 0); err != nil {
		return nil, err
	}
	g := onnx.NewGraph(p.Opset())
	g.Half(precision == onnxruntime.FP16)
	x := g.Input("x", onnx.Float, p.Space().Dims([]int{images, p.Card.Channels, height, width})...)
	t := g.Input("t", onnx.Int64, 1)
	y, err := p.predict(g, form, x, t)
	if err != nil {
		return nil, err
	}
	g.Output("y", y)
	model, err := g.Marshal("network")
	if err != nil {
		return nil, err
	}
	tensors, err := onnxruntime.NewTensors(x, t, y)
	if err != nil {
		return nil, err
	}
	if p.graph {
		rt = rt.Capturing()
	}
	session, err := rt.NewNetworkSession(model, []string{"x", "t"}, []string{"y"}, precision)
	if err != nil {
		onnxruntime.CloseTensors(tensors)
		return nil, fmt.Errorf("prior %s: %w", p.File, err)
	}
	n = &Network{X: tensors[0], T: tensors[1], Y: tensors[2], session: session}
	if p.graph {
		if n.binding, err = session.Bind(); err == nil {
			err = n.binding.SetOutput(0, n.Y)
		}
	}
	if err != nil {
		n.Close()
		return nil, fmt.Errorf("prior %s: %w", p.File, err)
	}
	return n, nil
}

// StayOnDevice makes Run read and write images of undefined elements in the memory of the device, as steps do, instead of X and Y: to time it without copies.
func (n *Network) StayOnDevice() (err error) {
	if n.binding == nil {
		if n.binding, err = n.session.Bind(); err != nil {
			return err
		}
	}
	image := onnx.Value{Name: "image", DType: onnx.Float, Dims: n.Y.Dims()}
	if n.x, err = n.binding.NewOutput(0, image); err != nil {
		return err
	}
	y, err := n.binding.NewOutput(0, image)
	if err != nil {
		return err
	}
	return n.binding.SetOutput(0, y)
}

// Run predicts Y from X and T.
func (n *Network) Run(ctx context.Context) error {
	if n.binding != nil {
		x := n.X
		if n.x != nil {
			x = n.x
		}
		for i, t := range []*onnxruntime.Tensor{x, n.T} {
			if err := n.binding.SetInput(i, t); err != nil {
				return err
			}
		}
		return n.binding.Run(ctx)
	}
	return n.session.Run(ctx, []*onnxruntime.Tensor{n.X, n.T}, []*onnxruntime.Tensor{n.Y})
}

// Close releases the session and the tensors' handles; the slices of X, T and Y stay readable. Close is idempotent.
func (n *Network) Close() {
	n.binding.Close()
	n.session.Close()
	onnxruntime.CloseTensors([]*onnxruntime.Tensor{n.X, n.T, n.Y})
}

// Milliseconds returns the mean time of a call. It makes one warm-up call, which it does not count, then calls until
// both the number of calls and the duration are reached.
func Milliseconds(calls int, atLeast time.Duration, call func() error) (float64, error) {
	if err := call(); err != nil {
		return 0, err
	}
	begin, done := time.Now(), 0
	for ; done < max(calls, 1) || time.Since(begin) < atLeast; done++ {
		if err := call(); err != nil {
			return 0, err
		}
	}
	return time.Since(begin).Seconds() * 1000 / float64(done), nil
}
