package job

import (
	"context"
	"errors"
	"strings"
	"testing"

	"ddiff/internal/gpuworker/workertest"
	"ddiff/internal/regular"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/solver"
	"ddiff/restore"
	"ddiff/restore/item"
	"ddiff/restore/operator"
	"ddiff/storage"
)

var must = workertest.Must

// engineOf returns an engine with a score model that predicts a tenth of the image as noise, and calls of two steps.
func engineOf(t *testing.T) *restore.Engine {
	t.Helper()
	return workertest.Engine(t, workertest.Share(t, 0.1), solver.Build{})
}

// planned returns a planned job of an item.
func planned(t *testing.T, in Loader, it item.Item) *Job {
	t.Helper()
	j := &Job{Item: it}
	must(t, in.Plan(j))
	return j
}

// An item that this worker cannot plan has the class of its error.
func TestPlanOfItem(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	good := workertest.Item(t, e, 32, 32)
	in := Loader{Engine: e}
	need := e.Memory(planned(t, in, good).Plan, 1)
	for name, tt := range map[string]struct {
		change func(*item.Item)
		memory int64
		want   error
		text   string
	}{
		"prior":        {func(it *item.Item) { it.Prior = strings.Repeat("1", 64) }, 0, nil, "needs the prior"},
		"settings":     {func(it *item.Item) { it.Solver = []byte("{") }, 0, ErrInput, "solver settings"},
		"operator":     {func(it *item.Item) { it.Operator = &item.Source{SHA256: "x"} }, 0, ErrInput, "no operator file"},
		"precision":    {func(it *item.Item) { it.Precision = "fp7" }, 0, ErrUnsupported, "a"},
		"task":         {func(it *item.Item) { it.Task = "unknown" }, 0, ErrUnsupported, "item a"},
		"identity":     {func(it *item.Item) { it.Sigma = 0.5 }, 0, ErrUnsupported, ""},
		"memory":       {func(*item.Item) {}, need - 1, ErrMemory, "32×32"},
		"least memory": {func(*item.Item) {}, need, nil, ""},
		"no limit":     {func(*item.Item) {}, 0, nil, ""},
	} {
		it := good
		tt.change(&it)
		in := Loader{Engine: e, Memory: tt.memory}
		err := in.Plan(&Job{Item: it})
		if (err == nil) != (tt.want == nil && tt.text == "") || tt.want != nil && !errors.Is(err, tt.want) || err != nil && !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if p, err := in.precision(&item.Item{Precision: "float32"}); err != nil || p != onnxruntime.FP32 {
		t.Errorf("precision %q, %v", p, err)
	}
	if p, err := in.precision(&item.Item{}); err != nil || p != "" {
		t.Errorf("precision %q, %v", p, err)
	}
}

// blobs are sources by path.
type blobs map[string][]byte

func (b blobs) Get(_ context.Context, path string) ([]byte, error) {
	if data, ok := b[path]; ok {
		return data, nil
	}
	return nil, storage.ErrNotFound
}

// The files of an item are read, verified, decoded and fitted; the measurement is simulated or read.
func TestLoadOfItem(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	encode := func(width, height int) []byte {
		data, err := raster.EncodePNG(raster.New(3, height, width))
		must(t, err)
		return data
	}
	array := func(shape ...int) []byte {
		n := 1
		for _, d := range shape {
			n *= d
		}
		values := make([]float32, n)
		values[0] = -1 // zeros alone may be black
		data, err := raster.EncodeNPY(shape, values)
		must(t, err)
		return data
	}
	from := blobs{"wide": encode(40, 16), "square": encode(16, 16), "text": []byte("text"), "y": array(3, 4, 4), "small": array(3, 4, 2)}
	src := func(path string) *item.Source {
		return &item.Source{Path: path, SHA256: regular.SHA256(from[path])}
	}
	for name, tt := range map[string]struct {
		image, measurement *item.Source
		width, height      int
		want               error
		text               string
	}{
		"image":                {src("square"), nil, 16, 16, nil, ""},
		"cropped image":        {src("wide"), nil, 16, 16, nil, ""},
		"another size":         {src("wide"), nil, 16, 24, ErrInput, "its size is"},
		"no image":             {src("text"), nil, 16, 16, raster.ErrFormat, "decode text"},
		"missing":              {src("none"), nil, 16, 16, storage.ErrNotFound, "read none"},
		"changed":              {&item.Source{Path: "square", SHA256: strings.Repeat("0", 64)}, nil, 16, 16, ErrDigest, "submit the campaign again"},
		"measurement":          {nil, src("y"), 16, 16, nil, ""},
		"measurement of other": {nil, src("small"), 16, 16, ErrInput, "the task needs"},
		"no measurement":       {nil, src("text"), 16, 16, nil, "read measurement"},
		"nothing":              {nil, nil, 16, 16, ErrInput, "neither an image nor a measurement"},
	} {
		in := Loader{Engine: e, Sources: from, Budget: raster.NewBudget(1 << 30)}
		tk := planned(t, in, workertest.Item(t, e, tt.width, tt.height, func(it *item.Item) { it.Image, it.Measurement = tt.image, tt.measurement }))
		err := in.load(t.Context(), tk, nil)
		if (err == nil) != (tt.text == "") || tt.want != nil && !errors.Is(err, tt.want) || err != nil && !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && (len(tk.Problem.Y) != 3*4*4 || (tk.truth != nil) != (tt.image != nil)) {
			t.Errorf("%s: %d values of y", name, len(tk.Problem.Y))
		}
		// Stored arrays replace the files.
		tk = planned(t, in, workertest.Item(t, e, 16, 16, func(it *item.Item) { it.Image = src("none") }))
		if err := in.load(t.Context(), tk, &Stored{Measurement: from["y"]}); err != nil || tk.truth != nil || len(tk.Problem.Y) != 48 {
			t.Errorf("stored arrays: %v", err)
		}
		if err := in.load(t.Context(), tk, &Stored{Measurement: from["small"]}); !errors.Is(err, ErrInput) {
			t.Errorf("a stored array of another shape: %v", err)
		}
	}
}

// A mask or kernel of an item is read from its file, or from the stored arrays.
func TestLoadOfMask(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	one, err := raster.EncodeNPY([]int{16, 16}, append(make([]float32, 255), 1))
	must(t, err)
	y, err := raster.EncodeNPY([]int{3, 16, 16}, make([]float32, 3*256))
	must(t, err)
	from := blobs{"mask": one, "text": []byte("text")}
	in := Loader{Engine: e, Sources: from, Budget: raster.NewBudget(1 << 30)}
	for path, good := range map[string]bool{"mask": true, "text": false} {
		it := workertest.Item(t, e, 16, 16, func(it *item.Item) {
			op, err := operator.Builtin().New(operator.InpaintRandom, nil, operator.Shape{Channels: 3, Height: 16, Width: 16})
			must(t, err)
			it.Task, it.Params, it.Image = operator.InpaintRandom, op.Params, nil
			it.Mask, it.Measurement = &item.Source{Path: path, SHA256: regular.SHA256(from[path])}, &item.Source{Path: "y", SHA256: regular.SHA256(y)}
		})
		tk := planned(t, in, it)
		if err := in.fetchDraw(t.Context(), tk); (err == nil) != good || good && (tk.Problem.Draw[255] != 1 || tk.Problem.Draw[0] != 0) {
			t.Errorf("%s: %v", path, err)
		}
		tk = planned(t, in, it)
		if err := in.load(t.Context(), tk, &Stored{Measurement: y, Mask: from[path]}); (err == nil) != good || good && tk.Problem.Draw[255] != 1 {
			t.Errorf("stored %s: %v", path, err)
		}
	}
}
