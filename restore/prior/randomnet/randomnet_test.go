package randomnet_test

import (
	"math"
	"testing"

	"ddiff/restore/noise"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/onnx/onnxtest"
	"ddiff/restore/prior"
	"ddiff/restore/prior/randomnet"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// load returns the network as a prior.
func load(t *testing.T, side int) *prior.Prior {
	t.Helper()
	data, err := randomnet.New(side)
	must(t, err)
	p, err := prior.Load("random", data)
	must(t, err)
	return p
}

// predict runs the network on standard normal images at a time index.
func predict(t *testing.T, side int, time int64) []float32 {
	t.Helper()
	net, err := load(t, side).Compile(onnxtest.Runtime(t), 2, side, side, onnxruntime.FP32)
	must(t, err)
	defer net.Close()
	noise.Normal(net.X.F32, noise.Key{1}, noise.Start, 0, 1)
	net.T.I64[0] = time
	must(t, net.Run(t.Context()))
	return net.Y.F32
}

// TestPredictionIsFinite: activations stay near 1 at every time index, and the time index changes the prediction.
func TestPredictionIsFinite(t *testing.T) {
	t.Parallel()
	const side = 32
	first := predict(t, side, 0)
	for _, time := range []int64{0, 500, 999} {
		var sum float64
		for _, v := range predict(t, side, time) {
			sum += float64(v) * float64(v)
		}
		if rms := math.Sqrt(sum / float64(len(first))); !(rms > 0.05 && rms < 5) {
			t.Errorf("time index %d: root mean square of the prediction is %g, want about 1", time, rms)
		}
	}
	same := 0
	for i, v := range predict(t, side, 999) {
		if v == first[i] {
			same++
		}
	}
	if same > len(first)/100 {
		t.Errorf("another time: %d of %d values are equal", same, len(first))
	}
}
