package modelfile_test

import (
	"testing"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxtest"
)

// Networks with channels last predict the same, in float32 and float16: the bundled prior's convolutions are NhwcConv but for those of its linear estimate,
// and its 35 normalisations one node each, which the CPU computes in float32.
func TestChannelsLast(t *testing.T) {
	if testing.Short() {
		t.Skip("computes with networks of many kinds: make test-all")
	}
	t.Parallel()
	for file, c := range map[string]struct{ convs, norms, sums int }{
		"bundled/prior.onnx": {51, 35, 17}, "testdata/attention_17_free.onnx": {18, 17, 7}, "testdata/attention_22_free.onnx": {18, 17, 7},
	} {
		m := modelOf(t, file)
		last := m.ChannelsLast()
		if got := operations(last); got["NhwcConv"] != c.convs || got["GroupNorm"] != c.norms || got["AddBias"] != c.sums {
			t.Errorf("%s: %d NhwcConv, %d GroupNorm and %d AddBias, want %+v", file, got["NhwcConv"], got["GroupNorm"], got["AddBias"], c)
		}
		for name, of := range map[string]func(m *modelfile.Model) *modelfile.Model{
			"float32": func(m *modelfile.Model) *modelfile.Model { return m }, "float16": (*modelfile.Model).Half,
		} {
			want, got := networkPredictions(t, of(m), 1), networkPredictions(t, onnxtest.Emulate(t, of(last)), 1)
			bound := map[string]float64{"float32": 1e-4, "float16": 1e-2}[name]
			worst, largest := farthest(want, got)
			if !(worst <= bound*largest) {
				t.Errorf("%s, %s: predictions differ by %.2g of %.2g", file, name, worst, largest)
			}
			if name == "float32" {
				own := networkPredictions(t, onnxtest.Emulate(t, last, "GroupNorm"), 1)
				if worst, largest := farthest(got, own); !(worst <= 1e-5*largest) {
					t.Errorf("%s: the program's normalisation differs by %.2g of %.2g", file, worst, largest)
				}
			}
			t.Logf("%s, %s: largest difference %.2g of %.2g", file, name, worst, largest)
		}
	}
}

// operations counts the nodes of a model by their type.
func operations(m *modelfile.Model) map[string]int {
	out := map[string]int{}
	for _, n := range m.Proto().Graph.Node {
		out[n.OpType]++
	}
	return out
}
