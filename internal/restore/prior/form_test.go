package prior_test

import (
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
)

// All forms predict what the file predicts, at the ends and in the middle of the schedule. The CPU runs those with channels last only after
// their operations are written in standard ones.
func TestForms(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles each form of the network: make test-all")
	}
	t.Parallel()
	rt := onnxtest.Runtime(t)
	for precision, bound := range map[onnxruntime.Precision]float64{onnxruntime.FP32: 2e-5, onnxruntime.FP16: 3e-3} {
		var want []float32
		for _, form := range prior.Rewritings() {
			p, err := prior.Open(prior.Bundled)
			must(t, err)
			q, err := p.InForm(rt, form)
			must(t, err)
			if tabled := form != prior.Exported; (q.Nodes("Sin") == 0) != tabled {
				t.Errorf("%s computes %d sines", form, q.Nodes("Sin"))
			}
			if q.Nodes("NhwcConv") > 0 {
				if _, err := q.Compile(rt, 2, 32, 48, precision); err == nil || !strings.Contains(err.Error(), "NhwcConv") {
					t.Errorf("%s: the CPU provider compiles it: %v", form, err)
				}
				q.Rewrite(func(m *modelfile.Model) *modelfile.Model { return onnxtest.Emulate(t, m) })
			}
			n, err := q.Compile(rt, 2, 32, 48, precision)
			must(t, err)
			var got []float32
			for _, at := range []int64{0, 300, 999} {
				copy(n.X.F32, onnxtest.Random(len(n.X.F32), 5))
				n.T.I64[0] = at
				must(t, n.Run(t.Context()))
				got = append(got, n.Y.F32...)
			}
			n.Close()
			if form == prior.Exported {
				want = slices.Clone(got)
			}
			d := prior.Difference(got, want)
			if !(d <= bound) {
				t.Errorf("%s in %s: predictions differ by %.2g of the largest", form, precision, d)
			}
			t.Logf("%s in %s: largest difference %.2g", form, precision, d)
		}
	}
}
