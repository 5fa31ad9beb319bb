package gpucheck

import (
	"context"
	"errors"
	"fmt"
	"math"

	"ddiff/restore/noise"
	"ddiff/restore/onnx"
	"ddiff/restore/prior"
	"ddiff/restore/solver"
)

// times are the time indices at which networks are compared.
var times = []int64{0, 250, 500, 999}

// bareNetwork is a score network alone, compiled for one batch size.
type bareNetwork struct {
	session *onnx.Session
	in, out []*onnx.Tensor
}

func newBareNetwork(v variant, p *prior.Prior, n, size int) (b *bareNetwork, err error) {
	g := onnx.NewGraph(p.Opset())
	g.Half(v.build.Precision == solver.FP16)
	x := g.Input("x", onnx.Float, n, p.Card.Channels, size, size)
	t := g.Input("t", onnx.Int64, 1)
	y, err := p.Predict(g, x, t)
	if err != nil {
		return nil, err
	}
	g.Output("y", y)
	model, err := g.Marshal("network")
	if err != nil {
		return nil, err
	}
	b = &bareNetwork{}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.in, err = onnx.NewTensors(x, t); err != nil {
		return b, err
	}
	if b.out, err = onnx.NewTensors(y); err != nil {
		return b, err
	}
	noise.Normal(b.in[0].F32, noise.Key{1}, noise.Start, 0, 1)
	b.in[1].I64[0] = times[1]
	b.session, err = v.rt.NewSession(model, []string{"x", "t"}, []string{"y"})
	return b, err
}

func (b *bareNetwork) run(ctx context.Context) error { return b.session.Run(ctx, b.in, b.out) }

func (b *bareNetwork) close() {
	if b.session != nil {
		b.session.Close()
	}
	onnx.CloseTensors(b.in)
	onnx.CloseTensors(b.out)
}

// outputs are the network's outputs at all times for one image of noise.
func outputs(ctx context.Context, v variant, p *prior.Prior, size int) ([]float32, error) {
	n, err := newBareNetwork(v, p, 1, size)
	if err != nil {
		return nil, err
	}
	defer n.close()
	var all []float32
	for _, t := range times {
		n.in[1].I64[0] = t
		if err := n.run(ctx); err != nil {
			return nil, err
		}
		all = append(all, n.out[0].F32...)
	}
	return all, nil
}

// compareNetworks compares the networks' outputs on the device with those of the CPU.
func compareNetworks(ctx context.Context, b *bench, r *Report) error {
	for _, name := range []string{bundledNetwork, randomNetwork} {
		p, size, err := b.network(name)
		if err != nil {
			return err
		}
		want, err := outputs(ctx, variant{fp32, b.cpu, solver.Build{}}, p, size)
		if err != nil {
			return fmt.Errorf("network %s on the CPU: %w", name, err)
		}
		for _, v := range b.variants {
			got, err := outputs(ctx, v, p, size)
			if r.lack(v, err) {
				continue
			}
			if err != nil {
				return fmt.Errorf("network %s in %s: %w", name, v.name, err)
			}
			a := Agreement{Network: name, Precision: v.name, Largest: maxAbs(want, nil), MaxAbs: maxAbs(got, want)}
			if math.IsNaN(a.MaxAbs) {
				return fmt.Errorf("network %s in %s: a value is not a number", name, v.name)
			}
			r.Network = append(r.Network, a)
		}
	}
	return beyond(r.parity(), stepBound, "the difference in float32")
}

// maxAbs is the largest absolute difference of two slices, or value of the first; NaN if
// there is one.
func maxAbs(x, y []float32) float64 {
	largest := 0.0
	for i, v := range x {
		d := float64(v)
		if y != nil {
			d -= float64(y[i])
		}
		if d = math.Abs(d); math.IsNaN(d) {
			return d
		}
		largest = max(largest, d)
	}
	return largest
}

// The bounds of what is right.
const (
	stepBound = 1e-3 // of differences in float32
	greyBound = 1    // of 8-bit images in float32
)

// ErrBounds: the device computes something else than the CPU.
var ErrBounds = errors.New("beyond the bound")

func beyond(value, bound float64, what string) error {
	if value <= bound {
		return nil
	}
	return fmt.Errorf("%s is %.3g: %w %g", what, value, ErrBounds, bound)
}
