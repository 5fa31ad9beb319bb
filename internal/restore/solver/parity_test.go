package solver

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// parityCase is a folder of testdata/ddiff: steps of the code of DDiff's authors for one task, see tools/method_vectors/ddiff.py.
type parityCase struct {
	Task, Preset string
	Params       map[string]float64
	Key          noise.Key
	Side         int
	Networks     []string
	Times        []int // the first of each segment
	Steps        []int // those after which a state is stored
	Stride       int   // of the stored values of a state
	folder       string
}

// parityLimits are the largest differences of a state, by the number of steps since the start of a segment.
var parityLimits = map[int]float64{1: 1e-4, 10: 1e-3}

// TestParity: the preset ffhq of ddiff makes the steps of the code that its authors released, from equal starts, noise, measurements and
// networks. The segments cover the first times, those at which γ_t and the noise change, and the last ones: the code writes nothing at time 0.
func TestParity(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/ddiff/*/case.json")
	if err != nil || len(cases) != 8 {
		t.Fatalf("%d cases, error %v; want one for each task", len(cases), err)
	}
	var lock sync.Mutex
	compared, worst := map[string]bool{}, 0.0
	t.Cleanup(func() { t.Logf("tasks=%d steps=10 max_abs=%.1e", len(compared), worst) })
	for _, path := range cases {
		c := parityCase{folder: filepath.Dir(path)}
		readJSON(t, path, &c)
		if !slices.Equal(c.Steps, []int{1, 10}) || !slices.Equal(c.Networks, []string{"bundled", "random"}) {
			t.Fatalf("%s: steps %v of networks %v", path, c.Steps, c.Networks)
		}
		for i, network := range c.Networks {
			t.Run(c.Task+"/"+network, func(t *testing.T) {
				t.Parallel()
				d := c.compare(t, i)
				lock.Lock()
				defer lock.Unlock()
				compared[c.Task], worst = true, max(worst, d)
			})
		}
	}
}

// compare makes the segments of a case with one of its networks. It returns the largest difference of a last state.
func (c parityCase) compare(t *testing.T, network int) float64 {
	t.Helper()
	shape := operator.Shape{Channels: 3, Height: c.Side, Width: c.Side}
	op, p := c.operator(t, shape), c.prior(t, network)
	prob := Problem{Y: readArray(t, filepath.Join(c.folder, "y.npy")), Draw: c.draw(t, op), Key: c.Key}
	s := compile(t, onnxtest.Runtime(t), newRun(t, p, op, resolve(t, method.Request{Method: "ddiff", Preset: c.Preset, Task: c.Task})), 1, Build{})
	picture, values := c.picture(t, shape), (shape.Size()+c.Stride-1)/c.Stride
	all := readArray(t, filepath.Join(c.folder, "x.npy")) // [networks, segments, states, values]
	if len(all) != len(c.Networks)*len(c.Times)*len(c.Steps)*values {
		t.Fatalf("%d values of states", len(all))
	}
	largest := map[int]float64{}
	for i, first := range c.Times {
		state := s.Start(c.Key)
		state.Step = s.Steps() - 1 - first
		noise.Normal(state.Tensors[0].Data, c.Key, noise.Start, uint32(first), 1)
		a := p.Schedule.AlphaBar[first]
		for j, v := range state.Tensors[0].Data {
			state.Tensors[0].Data[j] = float32(math.Sqrt(a)*float64(picture[j]) + math.Sqrt(1-a)*float64(v))
		}
		states := []State{state}
		end := errors.New("end of the segment")
		err := stepwise(t.Context(), s, []Problem{prob}, states, nil, func(step int) error {
			made := step - state.Step
			if k := slices.Index(c.Steps, made); k >= 0 {
				at := (network*len(c.Times)+i)*len(c.Steps) + k
				var got []float32
				for j := 0; j < shape.Size(); j += c.Stride {
					got = append(got, states[0].Image()[j])
				}
				d := maxAbs(got, all[at*values:(at+1)*values])
				largest[made] = max(largest[made], d)
				if !(d <= parityLimits[made]) {
					t.Errorf("from time %d, %d steps: the state differs by %.2g, at most %g is allowed", first, made, d, parityLimits[made])
				}
			}
			if made == c.Steps[len(c.Steps)-1] {
				return end
			}
			return nil
		})
		if !errors.Is(err, end) {
			t.Fatalf("from time %d: %v", first, err)
		}
	}
	t.Logf("%-16s %-7s largest difference of a state: %.1e after 1 step, %.1e after 10", c.Task, c.Networks[network], largest[1], largest[10])
	return largest[10]
}

// operator returns the operator of the task. That of nonlinear_deblur is the learned blur of the paper, from a file with random weights.
func (c parityCase) operator(t *testing.T, shape operator.Shape) *operator.Operator {
	t.Helper()
	set := operator.Builtin()
	if c.Task == operator.NonlinearDeblur {
		data, err := os.ReadFile("../../../restore/operator/testdata/bkse.onnx")
		must(t, err)
		f, err := operator.Load("bkse.onnx", data)
		must(t, err)
		set = operator.Set{f.Definition(c.Task)}
	}
	op, err := set.New(c.Task, c.Params, shape)
	must(t, err)
	return op
}

// draw returns the encoded mask or kernel, nil for a task without.
func (c parityCase) draw(t *testing.T, op *operator.Operator) []float32 {
	t.Helper()
	var d *operator.Draw
	for _, name := range []string{"mask", "kernel"} {
		data, err := os.ReadFile(filepath.Join(c.folder, name+".npy"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			var f *photograph.DrawFile
			f, err = photograph.ReadDraw(name, data, item.DrawForm{})
			must(t, err)
			d = f.Draw
		}
		must(t, err)
	}
	encoded, err := op.Encode(d)
	must(t, err)
	return encoded
}

// prior returns a network of the case: the bundled one, or the published architecture with random weights.
func (c parityCase) prior(t *testing.T, network int) *prior.Prior {
	t.Helper()
	if c.Networks[network] == "bundled" {
		return bundled(t)
	}
	return randomPrior(t, c.Side)
}

// picture returns the centre of the measured picture.
func (c parityCase) picture(t *testing.T, shape operator.Shape) []float32 {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(c.folder, "..", "picture.png"))
	must(t, err)
	img, err := raster.Decode(data)
	must(t, err)
	out := make([]float32, 0, shape.Size())
	top, left := (img.Height-c.Side)/2, (img.Width-c.Side)/2
	for row := range shape.Channels * c.Side {
		at := (row/c.Side*img.Height+top+row%c.Side)*img.Width + left
		out = append(out, img.Pix[at:at+c.Side]...)
	}
	return out
}
