package gpucheck

import (
	"context"
	"errors"
	"fmt"
	"math"

	"ddiff/restore/noise"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/prior"
	"ddiff/restore/solver"
)

// times are the time indices at which networks are compared.
var times = []int64{0, 250, 500, 999}

// compile returns the network of p with standard normal images as input, at times[1].
func (v variant) compile(p *prior.Prior, n, size int) (*prior.Network, error) {
	net, err := p.Compile(v.rt, n, size, size, v.build.Precision)
	if err != nil {
		return nil, err
	}
	noise.Normal(net.X.F32, noise.Key{1}, noise.Start, 0, 1)
	net.T.I64[0] = times[1]
	return net, nil
}

// predict returns the network's outputs at all times for one image of noise.
func (v variant) predict(ctx context.Context, p *prior.Prior, size int) ([]float32, error) {
	net, err := v.compile(p, 1, size)
	if err != nil {
		return nil, err
	}
	defer net.Close()
	var all []float32
	for _, t := range times {
		net.T.I64[0] = t
		if err := net.Run(ctx); err != nil {
			return nil, err
		}
		all = append(all, net.Y.F32...)
	}
	return all, nil
}

// reference returns the CPU in float32, with which devices are compared.
func reference(cpu *onnxruntime.Runtime) variant { return variant{fp32, cpu, solver.Build{}} }

// compareNetworks compares the networks' outputs on the device with those of the CPU.
func compareNetworks(ctx context.Context, s *session, r *Report) error {
	for _, name := range []string{bundledNetwork, randomNetwork} {
		p, size, err := s.network(name)
		if err != nil {
			return err
		}
		want, err := reference(s.cpu).predict(ctx, p, size)
		if err != nil {
			return fmt.Errorf("run network %s on the CPU: %w", name, err)
		}
		for _, v := range s.variants {
			got, err := v.predict(ctx, p, size)
			if r.unsupported(v, err) {
				continue
			}
			if err != nil {
				return fmt.Errorf("run network %s in %s: %w", name, v.name, err)
			}
			a := Agreement{Network: name, Precision: v.name, Largest: maxAbs(want, nil), MaxAbs: maxAbs(got, want)}
			if math.IsNaN(a.MaxAbs) {
				return fmt.Errorf("run network %s in %s: a value is NaN", name, v.name)
			}
			r.Network = append(r.Network, a)
		}
	}
	return withinBound(r.parity(), stepBound, "the difference in float32")
}

// maxAbs returns the largest absolute difference of x and y, or the largest absolute value of x if y is nil. It returns
// NaN if any difference is NaN.
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

// Bounds of differences from the CPU.
const (
	stepBound = 1e-3 // values in float32
	greyBound = 1    // 8-bit images in float32
)

// ErrBounds: the device's results differ from the CPU's by more than the bound.
var ErrBounds = errors.New("beyond the bound")

// withinBound returns ErrBounds if a value is NaN or above its bound; what names the value.
func withinBound(value, bound float64, what string) error {
	if value <= bound {
		return nil
	}
	return fmt.Errorf("%s is %.3g: %w %g", what, value, ErrBounds, bound)
}
