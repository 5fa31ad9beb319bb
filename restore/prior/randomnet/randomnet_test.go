package randomnet_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
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

// TestFFHQHasThePublishedSize: the published network has 93.6 million weights, according to its authors.
func TestFFHQHasThePublishedSize(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("generates 374 MB of weights; run without -short")
	}
	if got := float64(load(t, randomnet.FFHQ()).Parameters()) / 1e6; !(math.Abs(got-93.6) <= 0.05) {
		t.Errorf("%.3f million weights, want 93.6", got)
	}
}

// load returns the network as a prior.
func load(t *testing.T, cfg randomnet.Config) *prior.Prior {
	t.Helper()
	n, err := randomnet.New(cfg)
	must(t, err)
	data, err := n.ONNX()
	must(t, err)
	p, err := prior.Load("random", data)
	must(t, err)
	return p
}

// predict runs the network on standard normal images at a time index.
func predict(t *testing.T, cfg randomnet.Config, time int64) []float32 {
	t.Helper()
	net, err := load(t, cfg).Compile(onnxtest.Runtime(t), 2, cfg.Size, cfg.Size, onnxruntime.FP32)
	must(t, err)
	defer net.Close()
	noise.Normal(net.X.F32, noise.Key{1}, noise.Start, 0, 1)
	net.T.I64[0] = time
	must(t, net.Run(t.Context()))
	return net.Y.F32
}

// TestPredictionIsFinite: activations stay near 1 at every time index, and time index and seed change the prediction.
func TestPredictionIsFinite(t *testing.T) {
	t.Parallel()
	cfg := randomnet.Small(32)
	first := predict(t, cfg, 0)
	for _, time := range []int64{0, 500, 999} {
		var sum float64
		for _, v := range predict(t, cfg, time) {
			sum += float64(v) * float64(v)
		}
		if rms := math.Sqrt(sum / float64(len(first))); !(rms > 0.05 && rms < 5) {
			t.Errorf("time index %d: root mean square of the prediction is %g, want about 1", time, rms)
		}
	}
	other := cfg
	other.Seed = 1
	for name, y := range map[string][]float32{"time": predict(t, cfg, 999), "seed": predict(t, other, 0)} {
		same := 0
		for i := range y {
			if y[i] == first[i] {
				same++
			}
		}
		if same > len(y)/100 {
			t.Errorf("another %s: %d of %d values are equal", name, same, len(y))
		}
	}
}

// TestReproducible: equal configurations give equal bytes.
func TestReproducible(t *testing.T) {
	t.Parallel()
	var files [2][]byte
	for i := range files {
		n, err := randomnet.New(randomnet.Small(16))
		must(t, err)
		files[i], err = n.ONNX()
		must(t, err)
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("two builds differ")
	}
}

func TestSafetensors(t *testing.T) {
	t.Parallel()
	n, err := randomnet.New(randomnet.Small(16))
	must(t, err)
	var b bytes.Buffer
	must(t, n.WriteSafetensors(&b))
	length := binary.LittleEndian.Uint64(b.Bytes())
	var header map[string]struct {
		Shape   []int
		Offsets [2]int `json:"data_offsets"`
	}
	must(t, json.Unmarshal(b.Bytes()[8:8+length], &header))
	if got := header["input_blocks.0.0.weight"].Shape; len(got) != 4 || got[0] != 32 || got[1] != 3 {
		t.Errorf("the first convolution has the shape %v", got)
	}
	total := 0
	for name, e := range header {
		size := 4
		for _, d := range e.Shape {
			size *= d
		}
		if e.Offsets[1]-e.Offsets[0] != size {
			t.Errorf("%s: %v bytes for the shape %v", name, e.Offsets, e.Shape)
		}
		total += size
	}
	if b.Len() != 8+int(length)+total {
		t.Errorf("%d bytes of weights and a header of %d in a file of %d bytes", total, length, b.Len())
	}
}

func TestConfigValidation(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(c *randomnet.Config){
		"Size":        func(c *randomnet.Config) { c.Size = 18 },
		"Channels":    func(c *randomnet.Config) { c.Channels = 0 },
		"Base":        func(c *randomnet.Config) { c.Base = 48 },
		"Multipliers": func(c *randomnet.Config) { c.Multipliers = nil },
		"Blocks":      func(c *randomnet.Config) { c.Blocks = 0 },
		"Attention":   func(c *randomnet.Config) { c.Attention = []int{16} },
	} {
		c := randomnet.Small(16)
		change(&c)
		if _, err := randomnet.New(c); !errors.Is(err, randomnet.ErrConfig) || !bytes.Contains([]byte(err.Error()), []byte(name)) {
			t.Errorf("%s: error %v does not name the field", name, err)
		}
	}
}
