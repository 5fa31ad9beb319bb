package modelfile_test

import (
	"testing"

	"ddiff/restore/onnx/modelfile"
	"ddiff/restore/onnx/onnxtest"
)

// Networks with channels last predict the same, in float32 and float16: the bundled prior's convolutions are NhwcConv but for those of its linear estimate,
// and its 35 normalisations one node each.
func TestChannelsLast(t *testing.T) {
	t.Parallel()
	for file, c := range map[string]struct{ convs, norms int }{
		"bundled/prior.onnx": {51, 35}, "testdata/attention_17_free.onnx": {18, 17}, "testdata/attention_22_free.onnx": {18, 17},
	} {
		m := modelOf(t, file)
		for _, means := range []bool{false, true} {
			last, norms := m.ChannelsLast(means), c.norms
			if means {
				norms = 0
			}
			if got := operations(last); got["NhwcConv"] != c.convs || got["GroupNorm"] != norms {
				t.Errorf("%s, means %v: %d NhwcConv and %d GroupNorm, want %d and %d", file, means, got["NhwcConv"], got["GroupNorm"], c.convs, norms)
			}
			for name, of := range map[string]func(m *modelfile.Model) *modelfile.Model{
				"float32": func(m *modelfile.Model) *modelfile.Model { return m }, "float16": (*modelfile.Model).Half,
			} {
				want, got := networkPredictions(t, of(m), 1), networkPredictions(t, onnxtest.Emulate(t, of(last)), 1)
				bound := map[string]float64{"float32": 1e-4, "float16": 1e-2}[name]
				worst, largest := farthest(want, got)
				if !(worst <= bound*largest) {
					t.Errorf("%s, means %v, %s: predictions differ by %.2g of %.2g", file, means, name, worst, largest)
				}
				t.Logf("%s, means %v, %s: largest difference %.2g of %.2g", file, means, name, worst, largest)
			}
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
