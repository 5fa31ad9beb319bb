package onnx_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// Generated graphs per operator set, and the largest error of a derivative.
const (
	fuzzGraphs    = 100
	fuzzTolerance = 1e-3
	// The largest step of the differences, and the number of steps.
	fuzzStep  = 1.0 / 8
	fuzzSteps = 6
)

// TestGradientFuzz differentiates generated models until 500 have a derivative that finite differences in float32 resolve,
// and compares both in a random direction. It compares each inferred shape with the one that ONNX Runtime computes.
func TestGradientFuzz(t *testing.T) {
	if testing.Short() {
		t.Skip("differentiates many graphs: make test-all")
	}
	t.Parallel()
	graphs, drawn, worst := 0, 0, 0.0
	seen := map[string]int{}
	for i, opset := range []int{13, 17, 18, 20, 22} {
		const batch = 10
		for from, resolved := 0, 0; resolved < fuzzGraphs && from < 4*fuzzGraphs; from += batch {
			var models []fuzzed
			for k := range batch {
				models = append(models, fuzzModel(t, uint64(1000*i+from+k), opset))
			}
			drawn += batch
			for k, rel := range fuzzBatch(t, opset, models) {
				if rel < 0 || resolved == fuzzGraphs {
					continue
				}
				resolved++
				graphs++
				worst = max(worst, rel)
				gradients.recordGraph(rel)
				for _, op := range models[k].ops {
					seen[op]++
				}
			}
		}
	}
	for op, times := range seen {
		if times < 2 {
			t.Errorf("only %d graphs have %s", times, op)
		}
	}
	t.Logf("drawn=%d operations=%d graphs=%d max_rel=%.1e", drawn, len(seen), graphs, worst)
	if graphs != 5*fuzzGraphs {
		t.Errorf("%d graphs instead of %d", graphs, 5*fuzzGraphs)
	}
}

// fuzzBatch checks models in one session and returns their relative errors, −1 for derivatives that finite differences do
// not resolve.
func fuzzBatch(t *testing.T, opset int, models []fuzzed) []float64 {
	t.Helper()
	g := onnx.NewGraph(opset)
	var in, out []onnx.Value
	for i, m := range models {
		x := g.Input(fmt.Sprintf("x%d", i), onnx.Float, m.x...)
		seed := g.Input(fmt.Sprintf("seed%d", i), onnx.Float, m.y...)
		names := m.model.Outputs()
		got, err := g.Inline(m.model, map[string]onnx.Value{"x": x}, map[string][]int{names[0].Name: m.y, names[1].Name: {fuzzShape(t, m)}})
		must(t, err)
		dx, err := g.Gradient(got[names[0].Name], x, seed)
		if err != nil {
			t.Fatalf("graph %d: %v; operations %v", i, err, m.ops)
		}
		in = append(in, x, seed)
		for k, v := range []onnx.Value{got[names[0].Name], dx, got[names[1].Name]} {
			name := fmt.Sprintf("out%d_%d", i, k)
			g.Output(name, v)
			out = append(out, onnx.Value{Name: name, DType: v.DType, Dims: v.Dims})
		}
	}
	e := newEvaluation(t, g, in, out...)
	at, along := make([][]float32, len(in)), make([][]float32, len(in))
	for i, v := range in {
		at[i], along[i] = onnxtest.Random(v.Size(), uint32(2*i)), onnxtest.Random(v.Size(), uint32(2*i+1)) //nolint:gosec // small
	}
	eval := func(h float64) [][]float32 {
		p := slices.Clone(at)
		for i := 0; i < len(p); i += 2 {
			p[i] = make([]float32, len(at[i]))
			for k := range p[i] {
				p[i][k] = at[i][k] + float32(h)*along[i][k]
			}
		}
		return e.run(p...)
	}
	// The largest steps cross no kink: the generator keeps values away from them.
	middle := eval(0)
	var up, down [][][]float32
	for h := fuzzStep; len(up) < fuzzSteps; h /= 2 {
		up, down = append(up, eval(h)), append(down, eval(-h))
	}
	errors := make([]float64, len(models))
	for i, m := range models {
		compareShapes(t, m, e.out[3*i+2].I64)
		quotients, size := make([]float64, fuzzSteps), 0.0
		for k, s := range at[2*i+1] {
			size += math.Pow(float64(s*middle[3*i][k]), 2)
			for j := range quotients {
				quotients[j] += float64(s) * float64(up[j][3*i][k]-down[j][3*i][k]) / (2 * fuzzStep / float64(int(1)<<j))
			}
		}
		want, doubt := extrapolate(quotients)
		doubt = max(doubt, 3e-6*math.Sqrt(size)) // rounding
		got := 0.0
		for k, d := range middle[3*i+1] {
			got += float64(d) * float64(along[2*i][k])
		}
		if want == 0 || doubt > fuzzTolerance/5*math.Abs(want) {
			errors[i] = -1
			continue
		}
		errors[i] = math.Abs(got-want) / math.Abs(want)
		if !(errors[i] <= fuzzTolerance) {
			t.Errorf("graph %d of opset %d: derivative %.6g, finite differences %.6g ± %.1g; operations %v", i, opset, got, want, doubt, m.ops)
		}
	}
	return errors
}

// extrapolate returns the limit of central differences for steps that halve, and its error (Ridders' method).
func extrapolate(quotients []float64) (limit, doubt float64) {
	doubt = math.Inf(1)
	var last []float64
	for j, q := range quotients {
		row := []float64{q}
		for k, factor := 1, 4.0; k <= j; k, factor = k+1, factor*4 {
			row = append(row, (factor*row[k-1]-last[k-1])/(factor-1))
			if e := max(math.Abs(row[k]-row[k-1]), math.Abs(row[k]-last[k-1])); e < doubt {
				limit, doubt = row[k], e
			}
		}
		last = row
	}
	return limit, doubt
}

// fuzzShape returns the number of dimensions of all values of a model, and fails for a value without inferred shape.
func fuzzShape(t *testing.T, m fuzzed) int {
	t.Helper()
	types, err := m.model.Types(nil)
	must(t, err)
	total := 0
	for _, name := range m.names {
		v, ok := types[name]
		if !ok {
			t.Fatalf("no shape for %s; operations %v", name, m.ops)
		}
		total += v.Rank()
	}
	return total
}

// compareShapes compares inferred dimensions with those of ONNX Runtime.
func compareShapes(t *testing.T, m fuzzed, ran []int64) {
	t.Helper()
	types, err := m.model.Types(nil)
	must(t, err)
	for _, name := range m.names {
		v := types[name]
		for k, d := range v.Dims {
			if int64(d) != ran[k] {
				t.Errorf("value %s: inferred %v, ONNX Runtime %v", name, v.Dims, ran[:v.Rank()])
				break
			}
		}
		ran = ran[v.Rank():]
	}
}
