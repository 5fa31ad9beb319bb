package check

import (
	"context"
	"fmt"
	"math"

	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/raster"
)

// metric checks that a distance is zero for equal images, symmetric, not negative, and increasing with noise.
func (c *operatorCheck) metric(ctx context.Context, rt *onnxruntime.Runtime, r *OperatorReport) error {
	n := c.network
	if _, ok := n.input("y"); !ok || len(n.inputs) != 2 {
		return fmt.Errorf("%s: %w: its inputs are %v, want x and y", n.file, ErrInterface, names(n.inputs))
	}
	c.in["y"] = c.x
	run, err := n.open(rt, c.in, []string{"distance"}, nil)
	if err != nil {
		return err
	}
	defer run.close()
	got, times, err := c.times(ctx, run)
	if err != nil {
		return err
	}
	r.MSPerCall, r.Output = times.median(), got["distance"].Shape
	if len(got["distance"].Data) != 1 {
		return fmt.Errorf("%s: %w: it returns %d distances for one pair of images, want 1", n.file, ErrInterface, len(got["distance"].Data))
	}
	distance := func(x, y *raster.Array) (float64, error) {
		run.set(map[string]*raster.Array{"x": x, "y": y})
		got, err := run.run(ctx)
		if err != nil {
			return 0, err
		}
		return float64(got["distance"].Data[0]), nil
	}
	m := &MetricReport{Same: float64(got["distance"].Data[0])}
	for i, std := range []float64{0.02, 0.1, 0.4} {
		y := c.noisy(uint32(20+i), std)
		xy, err := distance(c.x, y)
		if err != nil {
			return err
		}
		yx, err := distance(y, c.x)
		if err != nil {
			return err
		}
		m.Distances = append(m.Distances, xy)
		m.Asymmetry = max(m.Asymmetry, math.Abs(xy-yx)/max(math.Abs(xy), math.Abs(yx), 1e-12))
	}
	r.Metric, r.Min, r.Max = m, m.Same, m.Distances[len(m.Distances)-1]
	if math.Abs(m.Same) > 1e-6 {
		r.Problems = append(r.Problems, fmt.Sprintf("the distance of an image from itself is %.3g, not 0", m.Same))
	}
	if m.Asymmetry > 1e-3 {
		r.Problems = append(r.Problems, fmt.Sprintf("the distance is not symmetric: swapping the images changes it by %.3g", m.Asymmetry))
	}
	for i, d := range m.Distances {
		if d < 0 || i > 0 && d <= m.Distances[i-1] {
			r.Problems = append(r.Problems, fmt.Sprintf("the distance does not increase with noise: %.4g", m.Distances))
			break
		}
	}
	return nil
}

// noisy returns the image with the n-th noise array added, clipped to [−1, 1].
func (c *operatorCheck) noisy(n uint32, std float64) *raster.Array {
	y := &raster.Array{Shape: c.x.Shape, Data: c.noise(len(c.x.Data), n, std)}
	for i, v := range c.x.Data {
		y.Data[i] = max(-1, min(1, y.Data[i]+v))
	}
	return y
}
