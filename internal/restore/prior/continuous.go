package prior

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/restore/onnx"
)

// The ways to noise an image x that a schedule may name before its levels. Both networks take a float instead of a time index.
const (
	flow  = "flow"  // (1 − t)·x + t·ε at t in (0, 1); velocity is ε − x
	sigma = "sigma" // x + σ·ε at σ
)

// edm is the prediction F of a network with the scalings of Karras et al. (Elucidating the Design Space of Diffusion-Based Generative Models, 2022), table 1,
// behind which is their σ_data: it sees c_in·(x + σ·ε) and ln(σ)/4, and z = c_skip·(x + σ·ε) + c_out·F.
const edm = "edm:"

// noising divides a schedule into the way to noise, empty for that of an index, and the levels.
func noising(schedule string) (kind, levels string) {
	for _, kind := range []string{flow, sigma} {
		if levels, ok := strings.CutPrefix(schedule, kind+":"); ok {
			return kind, levels
		}
	}
	return "", schedule
}

// dataDeviation returns σ_data, 0 for another prediction than edm or another number than a positive one.
func (p Prediction) dataDeviation() float64 {
	text, _ := strings.CutPrefix(string(p), edm)
	d, err := strconv.ParseFloat(text, 64)
	if err != nil || !(d > 0) || math.IsInf(d, 0) || text == string(p) {
		return 0
	}
	return d
}

// problem describes why a network of a schedule has no such prediction.
func (p Prediction) problem(schedule string) string {
	known := []Prediction{Epsilon, Sample, Velocity}
	kind, levels := noising(schedule)
	switch {
	case kind == sigma && p != Epsilon && p != Sample && p.dataDeviation() == 0:
		return "must be epsilon, sample or edm:STD, with the standard deviation of the training images, for the schedule sigma"
	case kind != sigma && !slices.Contains(known, p):
		return "must be epsilon, sample or velocity"
	case kind == "" && p == Epsilon && (strings.HasPrefix(levels, "zero_snr:") || tableEndsIn0(levels)):
		return "must be sample or velocity: epsilon says nothing of the image where ᾱ is 0"
	}
	return ""
}

func tableEndsIn0(levels string) bool {
	last, err := strconv.ParseFloat(levels[strings.LastIndexByte(levels, ':')+1:], 64)
	return strings.HasPrefix(levels, "table:") && err == nil && last == 0
}

// Continuous reports whether the network takes flow times or noise levels, and not the index of a schedule.
func (c Card) Continuous() bool {
	kind, _ := noising(c.Schedule)
	return kind != ""
}

// Predicts is the prediction of [Prior.Predict]: that of the network, but Velocity, which is accurate at all levels, for a continuous one.
func (c Card) Predicts() Prediction {
	if c.Continuous() {
		return Velocity
	}
	return c.Prediction
}

// scalings make a prediction F of a network an index's: the velocity is image·x_t + output·F(input·x_t, time).
type scalings struct{ input, time, image, output float64 }

// scalings returns those of the card at a level of its schedule.
func (c Card) scalings(alphaBar float64) scalings {
	kind, _ := noising(c.Schedule)
	a, b := math.Sqrt(alphaBar), math.Sqrt(1-alphaBar) // x_t = a·x + b·ε
	level := b / a
	s := scalings{input: 1 / a, time: level}
	if kind == flow {
		s = scalings{input: 1 / (a + b), time: b / (a + b)}
	}
	d := c.Prediction.dataDeviation()
	switch {
	case d > 0:
		root := math.Hypot(level, d)
		s.input, s.time = s.input/root, math.Log(level)/4
		s.image, s.output = (a-d*d/(root*root)/a)/b, -level*d/root/b
	case c.Prediction == Velocity: // of a flow
		s.image, s.output = 1-2*s.time, s.input
	case c.Prediction == Sample:
		s.image, s.output = a/b, -1/b
	default:
		s.image, s.output = -b/a, 1/a
	}
	return s
}

// discretise makes a continuous network one of the time index of the schedule, with the prediction Predicts. All else of the program knows networks
// of an index only.
func (p *Prior) discretise() error {
	if !p.Card.Continuous() {
		return nil
	}
	if p.t.DType != onnx.Float {
		return fmt.Errorf("%w: the schedule starts with flow or sigma, so the input %s must be float", ErrCard, p.t.Name)
	}
	dims := []int{p.x.Dims[0], p.channels(), p.x.Dims[2], p.x.Dims[3]}
	g := onnx.NewGraph(p.Opset())
	x, t := g.Input("x", onnx.Float, dims...), g.Input("t", onnx.Int64, -1)
	table := func(of func(s scalings) float64) onnx.Value {
		column := make([]float32, p.Schedule.Steps())
		for i, a := range p.Schedule.AlphaBar {
			column[i] = float32(of(p.Card.scalings(a)))
		}
		return g.Gather(g.Const(column, len(column)), t)
	}
	times := func(v onnx.Value, factor onnx.Value) onnx.Value {
		return g.Mul(v, g.Reshape(factor, -1, 1, 1, 1))
	}
	out, err := g.Inline(p.file, map[string]onnx.Value{
		p.x.Name: times(x, table(func(s scalings) float64 { return s.input })),
		p.t.Name: table(func(s scalings) float64 { return s.time }),
	}, map[string][]int{p.output: dims})
	if err != nil {
		return err
	}
	g.Output("velocity", g.Add(
		times(x, table(func(s scalings) float64 { return s.image })),
		// in half precision this sum would lose its last digits: it is a difference of large numbers at the noisiest levels
		times(g.Cast(out[p.output], onnx.Float), table(func(s scalings) float64 { return s.output }))))
	data, err := g.Marshal("network")
	if err != nil {
		return err
	}
	if p.file, err = modelfile.ReadModel(data); err != nil {
		return err
	}
	return p.bind()
}
