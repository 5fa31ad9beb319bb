package solver

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
)

// kind is a way in which a card may describe a network of Gaussian pixels N(0, variance). The network is factor·x with the factor of its time, or
// of ᾱ for a network of an index.
type kind struct {
	schedule, prediction string
	factor               func(at, variance float64) float64
	graph                func(k gaussianGraph) onnx.Value // factor in a graph
}

// gaussianGraph builds the factor of a network of a continuous time.
type gaussianGraph struct {
	*onnx.Graph
	at, variance onnx.Value
}

func (k gaussianGraph) num(x float64) onnx.Value { return k.Scalar(float32(x)) }

// shrink is signal·variance/(signal²·variance + noise²), which makes the clean image of signal·x + noise·ε.
func (k gaussianGraph) shrink(signal, noise onnx.Value) onnx.Value {
	v := k.Mul(k.Mul(signal, signal), k.variance)
	return k.Div(k.Mul(signal, k.variance), k.Add(v, k.Mul(noise, noise)))
}

// kinds are the descriptions by name, with the levels of a schedule.
func kinds(levels string) map[string]kind {
	const std = 0.5 // of edm
	flow := func(of func(k gaussianGraph, clean, noise onnx.Value) onnx.Value) func(k gaussianGraph) onnx.Value {
		return func(k gaussianGraph) onnx.Value {
			signal := k.Minus(k.num(1), k.at)
			clean := k.shrink(signal, k.at)
			return of(k, clean, k.Div(k.Minus(k.num(1), k.Mul(signal, clean)), k.at))
		}
	}
	sigma := func(of func(k gaussianGraph, clean, noise onnx.Value) onnx.Value) func(k gaussianGraph) onnx.Value {
		return func(k gaussianGraph) onnx.Value {
			clean := k.shrink(k.num(1), k.at)
			return of(k, clean, k.Div(k.Minus(k.num(1), clean), k.at))
		}
	}
	clean := func(_ gaussianGraph, clean, _ onnx.Value) onnx.Value { return clean }
	noise := func(_ gaussianGraph, _, noise onnx.Value) onnx.Value { return noise }
	return map[string]kind{
		"flow, velocity": {"flow:" + levels, "velocity", nil, flow(func(k gaussianGraph, clean, noise onnx.Value) onnx.Value {
			return k.Minus(noise, clean)
		})},
		"flow, sample":   {"flow:" + levels, "sample", nil, flow(clean)},
		"flow, epsilon":  {"flow:" + levels, "epsilon", nil, flow(noise)},
		"sigma, sample":  {"sigma:" + levels, "sample", nil, sigma(clean)},
		"sigma, epsilon": {"sigma:" + levels, "epsilon", nil, sigma(noise)},
		// F of c_in·(x + σ·ε) and ln(σ)/4 is σ·(variance − std²)/(std·(variance + σ²)).
		"edm": {"sigma:" + levels, "edm:0.5", nil, func(k gaussianGraph) onnx.Value {
			level := k.Exp(k.Mul(k.at, k.num(4)))
			d := k.Mul(k.Add(k.variance, k.Mul(level, level)), k.num(std))
			return k.Div(k.Mul(level, k.Minus(k.variance, k.num(std*std))), d)
		}},
		"index, velocity": {levels, "velocity", func(a, v float64) float64 {
			return math.Sqrt(a*(1-a)) * (1 - v) / (a*v + 1 - a)
		}, nil},
		"index, sample": {levels, "sample", func(a, v float64) float64 { return math.Sqrt(a) * v / (a*v + 1 - a) }, nil},
	}
}

// prior returns the network of a kind for independent pixels N(0, variance).
func (k kind) prior(t *testing.T, shape operator.Shape, variance float64) *prior.Prior {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, shape.Dims(-1)...)
	var factor onnx.Value
	if k.graph != nil {
		at := g.Input("t", onnx.Float, -1)
		factor = k.graph(gaussianGraph{g, g.Reshape(at, -1, 1, 1, 1), g.Scalar(float32(variance))})
	} else {
		// The network knows ᾱ of a schedule to its end, where it is 0.
		schedule, err := prior.ParseSchedule(k.schedule)
		must(t, err)
		table := make([]float32, schedule.Steps())
		for i, a := range schedule.AlphaBar {
			if i == len(table)-1 && strings.HasPrefix(k.schedule, "zero_snr:") {
				a = 0
			}
			table[i] = float32(k.factor(a, variance))
		}
		factor = g.Reshape(g.Gather(g.Const(table, len(table)), g.Input("t", onnx.Int64, -1)), -1, 1, 1, 1)
	}
	g.Output("y", g.Mul(x, factor))
	data, err := g.Marshal("gaussian")
	must(t, err)
	data = onnxtest.WithMetadata(t, data, map[string]string{
		"ddiff.card": "1", "ddiff.name": "gaussian", "ddiff.prediction": k.prediction, "ddiff.schedule": k.schedule,
		"ddiff.range": "-1..1", "ddiff.channels": strconv.Itoa(shape.Channels), "ddiff.multiple_of": "2",
		"ddiff.learned_variance": "false", "ddiff.license": "Apache-2.0",
	})
	p, err := prior.Load("gaussian.onnx", data)
	must(t, err)
	return p
}

// table writes a schedule as a table.
func table(t *testing.T, schedule string) string {
	t.Helper()
	s, err := prior.ParseSchedule(schedule)
	must(t, err)
	var out strings.Builder
	out.WriteString("table")
	for _, a := range s.AlphaBar {
		out.WriteString(":" + strconv.FormatFloat(a, 'g', -1, 64))
	}
	return out.String()
}

// TestKindsPredictTheCleanImage: whatever a card states, the clean image is that of the closed form at all levels.
func TestKindsPredictTheCleanImage(t *testing.T) {
	t.Parallel()
	const variance = 0.3
	shape := operator.Shape{Channels: 3, Height: 8, Width: 8}
	for _, levels := range []string{linearSchedule, "cosine:50", "zero_snr:scaled_linear:0.00085:0.012:1000", table(t, "zero_snr:linear:1e-3:0.2:30")} {
		for name, k := range kinds(levels) {
			p := k.prior(t, shape, variance)
			net, err := p.Compile(onnxtest.Runtime(t), 2, shape.Height, shape.Width, onnxruntime.FP32)
			must(t, err)
			noise.Normal(net.X.F32, noise.Key{3}, noise.Start, 0, 1)
			last := p.Schedule.Steps() - 1
			for _, at := range []int{0, 1, last / 10, last / 2, last - 1, last} {
				net.T.I64[0] = int64(at)
				must(t, net.Run(t.Context()))
				alpha := p.Schedule.AlphaBar[at]
				a, b := math.Sqrt(alpha), math.Sqrt(1-alpha)
				worst := 0.0
				for i, x := range net.X.F32 {
					clean := float64(net.Y.F32[i])
					if p.Card.Predicts() == prior.Velocity {
						clean = a*float64(x) - b*clean
					}
					worst = max(worst, math.Abs(clean-a*variance/(alpha*variance+b*b)*float64(x)))
				}
				limit := 1e-4
				if k.prediction == "epsilon" {
					limit = max(limit, 2e-6/a) // the clean image is a small difference, divided by √ᾱ
				}
				if !(worst <= limit) {
					t.Errorf("%s of %.30s at time %d, ᾱ %.3g: the clean image differs by %.2g", name, levels, at, alpha, worst)
				}
			}
			net.Close()
		}
	}
}

// TestKindsInAllMethods: every method on pixels gives what it gives with the noise prediction of the same network.
func TestKindsInAllMethods(t *testing.T) {
	t.Parallel()
	const variance, steps = 0.05, 8
	shape := operator.Shape{Channels: 1, Height: 8, Width: 8}
	op := newOperator(t, operator.InpaintRandom, shape)
	probs := problems(t, op, 1, 0.05)
	epsilon := kind{linearSchedule, "epsilon", func(a, v float64) float64 { return math.Sqrt(1-a) / (a*v + 1 - a) }, nil}
	all := kinds(linearSchedule)
	all["table"] = kind{table(t, linearSchedule), "epsilon", epsilon.factor, nil}
	for _, m := range method.Builtin() {
		info := m.Info()
		if info.Latent {
			continue
		}
		t.Run(info.Name, func(t *testing.T) {
			t.Parallel()
			settings := resolve(t, method.Request{Method: info.Name, Preset: "natural", Task: op.Task, Steps: steps, Values: gamma()})
			restored := func(k kind) []Solution {
				s := compile(t, onnxtest.Runtime(t), newRun(t, k.prior(t, shape, variance), op, settings), 1, Build{})
				return solve(t, s, probs)
			}
			want := restored(epsilon)
			for name, k := range all {
				limit := 1e-4
				if k.prediction == "epsilon" && k.graph != nil {
					limit = 5e-4 // see TestKindsPredictTheCleanImage
				}
				if d := maxAbs(restored(k)[0].X, want[0].X); !(d <= limit) {
					t.Errorf("%s: the restored image differs by %.2g", name, d)
				}
			}
		})
	}
}

// TestZeroTerminalSNR: a schedule to zero restores as the table of the same levels does.
func TestZeroTerminalSNR(t *testing.T) {
	t.Parallel()
	const levels = "zero_snr:scaled_linear:0.00085:0.012:1000"
	shape := operator.Shape{Channels: 1, Height: 8, Width: 8}
	op := newOperator(t, operator.InpaintRandom, shape)
	probs := problems(t, op, 1, 0.05)
	settings := config(t, op.Task, 20)
	var first []Solution
	for name, k := range kinds(levels) {
		s := compile(t, onnxtest.Runtime(t), newRun(t, k.prior(t, shape, 0.05), op, settings), 1, Build{})
		got := solve(t, s, probs)
		if first == nil {
			first = got
		}
		if d := maxAbs(got[0].X, first[0].X); !(d <= 1e-4) {
			t.Errorf("%s: the restored image differs by %.2g", name, d)
		}
	}
}
