package solver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// publishedCase is a folder of testdata/methods: steps of the authors' code of a method, see tools/method_vectors.
type publishedCase struct {
	Task     string
	Key      noise.Key
	Sigma    float64
	Settings map[string]any
	// Recorded are the steps after which states are stored: nil for the first ten.
	Recorded []int
}

// Each published method makes the steps of its authors' code: from the same start, noise, measurement and prior, the states
// agree to 1e-3. The first step of Adam moves each entry by the learning rate, whatever its gradient, so that rounding shows where that is nearly 0.
func TestPublishedSteps(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("testdata/methods/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("%d folders, error %v", len(folders), err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			var c publishedCase
			readJSON(t, filepath.Join(folder, "case.json"), &c)
			if c.Recorded == nil {
				c.Recorded = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
			}
			want := readArray(t, filepath.Join(folder, "x.npy"))
			shape := operator.Shape{Channels: 3, Height: 32, Width: 32}
			op := newOperator(t, c.Task, shape)
			prob := Problem{Y: readArray(t, filepath.Join(folder, "y.npy")), Key: c.Key}
			if _, err := os.Stat(filepath.Join(folder, "mask.npy")); err == nil {
				mask := &operator.Draw{Name: "mask", Dims: []int{shape.Height, shape.Width}, Data: readArray(t, filepath.Join(folder, "mask.npy"))}
				prob.Draw, err = op.Encode(mask)
				must(t, err)
			}
			cfg := c.settings(t)
			s := compile(t, onnxtest.Runtime(t), newRun(t, c.prior(t, cfg), op, cfg), 1, Build{})
			states := []State{s.Start(c.Key)}
			made := 0
			err := stepwise(t.Context(), s, []Problem{prob}, states, make([]Curves, 1), func(step int) error {
				size := shape.Size()
				i := slices.Index(c.Recorded, step)
				if i < 0 {
					return nil
				}
				made++
				if d := maxAbs(states[0].Tensors[0].Data, want[i*size:(i+1)*size]); !(d <= 1e-3) {
					t.Errorf("step %d: the state differs by %.2g", step, d)
				} else {
					t.Logf("step %d: the state differs by %.2g", step, d)
				}
				return nil
			})
			if err != nil || made != 10 {
				t.Errorf("%d steps compared, error %v; want 10", made, err)
			}
		})
	}
}

// stepwise is Resume with a call for each step, so that progress sees the states.
func stepwise(ctx context.Context, s *Solver, problems []Problem, states []State, curves []Curves, progress func(step int) error) error {
	made := errors.New("a step was made")
	for states[0].Step < s.Steps() {
		if err := s.Resume(ctx, problems, states, curves, func(int) error { return made }); !errors.Is(err, made) {
			return err
		}
		if err := progress(states[0].Step); err != nil {
			return err
		}
	}
	return nil
}

// prior returns the bundled prior; for methods with a latent prior, it is between two Haar transforms.
func (c publishedCase) prior(t *testing.T, cfg method.Settings) *prior.Prior {
	t.Helper()
	if found, err := method.Builtin().Find(cfg.Method); err != nil || !found.Info().Latent {
		return bundled(t)
	}
	return haarPrior(t)
}

// settings returns the settings of a case.
func (c publishedCase) settings(t *testing.T) method.Settings {
	t.Helper()
	r := method.Request{Preset: "natural", Task: c.Task, Values: map[string]parameter.Value{}}
	for name, v := range c.Settings {
		switch x := v.(type) {
		case string:
			r.Values[name] = parameter.Word(x)
		case float64:
			r.Values[name] = parameter.Number(x)
		}
	}
	r.Method, r.Steps = r.Values["method"].Word, int(r.Values["steps"].Number)
	delete(r.Values, "method")
	delete(r.Values, "steps")
	// What a case does not state has the method's default, not the value of a preset.
	for _, m := range method.Builtin() {
		if info := m.Info(); info.Name == r.Method {
			for _, param := range info.Parameters {
				if _, ok := r.Values[param.Name]; !ok {
					r.Values[param.Name] = param.Start()
				}
			}
		}
	}
	return resolve(t, r)
}
