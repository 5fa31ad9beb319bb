package operator_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// must ends the test with an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fileOf returns the bytes of an operator file. build adds the outputs for the images x.
func fileOf(t testing.TB, opset int, x []int, card map[string]string, build func(g *onnx.Graph, x onnx.Value)) []byte {
	t.Helper()
	g := onnx.NewGraph(opset)
	build(g, g.Input("x", onnx.Float, x...))
	data, err := g.Marshal("own")
	must(t, err)
	return onnxtest.WithMetadata(t, data, card)
}

func load(t *testing.T, data []byte) *operator.File {
	t.Helper()
	f, err := operator.Load("own.onnx", data)
	must(t, err)
	return f
}

// output adds y = forward(x).
func output(forward func(g *onnx.Graph, x onnx.Value) onnx.Value) func(g *onnx.Graph, x onnx.Value) {
	return func(g *onnx.Graph, x onnx.Value) { g.Output("y", forward(g, x)) }
}

// halves is y = exp(x)·gain of the left half of an image, with the gain as a parameter.
func halves(g *onnx.Graph, x onnx.Value) {
	gain := g.Input("gain", onnx.Float)
	g.Output("y", g.Mul(g.Slice(g.Exp(x), 3, 0, x.Dims[3]/2), gain))
}

var gainCard = map[string]string{"ddiff.kind": "operator", "ddiff.params.gain": "0.5; (0, 2]; exposure"}

// TestFile checks measurement, gradient and draw of a file against the formula.
func TestFile(t *testing.T) {
	t.Parallel()
	f := load(t, fileOf(t, 17, []int{1, 3, 16, 16}, gainCard, halves))
	want := parameter.Parameter{Name: "gain", Default: 0.5, Max: 2, Open: true, Doc: "exposure"}
	if len(f.Parameters) != 1 || f.Parameters[0].Range() != want.Range() || f.Parameters[0].Doc != want.Doc {
		t.Fatalf("%+v", f)
	}
	set := append(operator.Builtin(), f.Definition("halves"))
	shape := operator.Shape{Channels: 3, Height: 16, Width: 16}
	op, err := set.New("halves", map[string]float64{"gain": 1.5}, shape)
	must(t, err)
	if !slices.Equal(op.Measurement, []int{3, 16, 8}) || op.Own != f || op.Baseline(make([]float32, 384)) != nil {
		t.Errorf("measurement %v, own %v", op.Measurement, op.Own)
	}
	rt := onnxtest.Runtime(t)
	fw, err := operator.NewForward(rt, op)
	must(t, err)
	defer fw.Close()
	x := normal(shape.Size(), 3, 0.4)
	y, err := fw.Apply(t.Context(), x, nil)
	must(t, err)
	for i, v := range y {
		if want := 1.5 * math.Exp(float64(x[i/8*16+i%8])); !(math.Abs(float64(v)-want) <= 1e-5*want) {
			t.Fatalf("y[%d] is %v, want %v", i, v, want)
		}
	}
	// The file is for one image: a batch has a copy of it for each image.
	seed := normal(2*op.MeasurementSize(), 4, 1)
	two := append(slices.Clone(x), normal(shape.Size(), 5, 0.4)...)
	ys, gx, _ := evaluate(t, op, 2, two, seed, make([]float32, len(seed)), nil)
	if e := relative(ys[:len(y)], y); !(e <= 1e-6) {
		t.Errorf("the first image of a batch differs by %g", e)
	}
	for i, v := range gx {
		row, column := i/16, i%16
		want := 0.0
		if column < 8 {
			want = 1.5 * math.Exp(float64(two[i])) * float64(seed[row*8+column])
		}
		if !(math.Abs(float64(v)-want) <= 1e-4*max(1, math.Abs(want))) {
			t.Fatalf("gx[%d] is %v, want %v", i, v, want)
		}
	}
	if r, err := op.CheckGradient(t.Context(), rt); err != nil || !(r.Error <= 1e-3) {
		t.Errorf("gradient %+v, %v", r, err)
	}
	if err := f.Verify(t.Context(), rt); err != nil {
		t.Error(err)
	}
	if got, err := set.ImageShape("halves", nil, []int{3, 16, 8}); err != nil || got != shape {
		t.Errorf("image of a measurement: %v, %v", got, err)
	}
	if _, err := set.ImageShape("halves", nil, []int{3, 16, 16}); !errors.Is(err, operator.ErrShape) {
		t.Errorf("image of another measurement: %v", err)
	}
}

// TestFileOutline: shapes and parameters do not need the network.
func TestFileOutline(t *testing.T) {
	t.Parallel()
	f := load(t, fileOf(t, 17, []int{1, 3, 16, 16}, gainCard, halves)).Outline()
	op, err := operator.Set{f.Definition("halves")}.New("halves", nil, operator.Shape{Channels: 3, Height: 16, Width: 16})
	if err != nil || op.Params["gain"] != 0.5 || !slices.Equal(op.Measurement, []int{3, 16, 8}) {
		t.Fatalf("%+v, %v", op, err)
	}
	if _, err := operator.NewForward(onnxtest.Runtime(t), op); !errors.Is(err, operator.ErrFile) {
		t.Errorf("error %v, want that the network is not loaded", err)
	}
}

// bkse is the learned blur as the exporter writes it, with random weights under the published names: tools/learned_blur.py made it.
func bkse(t *testing.T) *operator.File {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "bkse.onnx"))
	must(t, err)
	return load(t, data)
}

// TestExportedBlur checks the exporter's learned blur: sizes and kernel of a free size, one draw per item, and its gradient.
func TestExportedBlur(t *testing.T) {
	t.Parallel()
	f, rt := bkse(t), onnxtest.Runtime(t)
	must(t, f.Verify(t.Context(), rt))
	set := operator.Set{f.Definition("blur")}
	op, err := set.New("blur", nil, operator.Shape{Channels: 3, Height: 128, Width: 256})
	must(t, err)
	if dims := op.ParameterDims(5); !slices.Equal(dims, []int{5, 4, 1, 2}) {
		t.Errorf("draws %v", dims)
	}
	// Four times the pixels have about four times the values.
	four, err := set.New("blur", nil, operator.Shape{Channels: 3, Height: 256, Width: 512})
	must(t, err)
	small, err := op.Bytes()
	must(t, err)
	large, err := four.Bytes()
	must(t, err)
	if !(small >= 16*float64(op.Image.Size())) || !(large >= 3*small) || !(large <= 4*small) {
		t.Errorf("%g bytes, %g for four times the pixels", small, large)
	}
	a, again, b := op.Draw(noise.Key{1}), op.Draw(noise.Key{1}), op.Draw(noise.Key{2})
	if !slices.Equal(a.Data, again.Data) || slices.Equal(a.Data, b.Data) || a.Name != "kernel" {
		t.Errorf("draws %v, %v, %v", a, again, b)
	}
	if r, err := op.CheckGradient(t.Context(), rt); err != nil || !(r.Error <= 2e-3) {
		t.Errorf("gradient %+v, %v", r, err)
	}
	for name, d := range map[string]*operator.Draw{
		"none": nil, "a mask": {Name: "mask", Dims: []int{4, 1, 2}, Data: make([]float32, 8)}, "another shape": {Name: "kernel", Dims: []int{4, 2}, Data: make([]float32, 8)},
	} {
		if _, err := op.Encode(d); !errors.Is(err, operator.ErrParam) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	_, err = set.New("blur", nil, operator.Shape{Channels: 3, Height: 64, Width: 128})
	if !errors.Is(err, operator.ErrShape) || !strings.Contains(err.Error(), "multiples of 128") {
		t.Errorf("64×128: error %v", err)
	}
	if got, err := set.ImageShape("blur", nil, []int{3, 128, 256}); err != nil || got != op.Image {
		t.Errorf("image of a measurement: %v, %v", got, err)
	}
}

func TestKernelDeviation(t *testing.T) {
	t.Parallel()
	op, err := operator.Set{bkse(t).Definition("blur")}.New("blur", nil, operator.Shape{Channels: 3, Height: 1024, Width: 1024})
	must(t, err)
	sum := 0.0
	all := op.Draw(noise.Key{1}).Data
	for _, v := range all {
		sum += float64(v * v)
	}
	if std := math.Sqrt(sum / float64(len(all))); !(math.Abs(std-1.2) <= 0.15) { // 256 entries: 3.4 standard errors
		t.Errorf("standard deviation %.3f, want 1.2", std)
	}
}

func TestUnusableFiles(t *testing.T) {
	t.Parallel()
	image := []int{1, 3, 16, 16}
	plain := func(build func(g *onnx.Graph, x onnx.Value)) []byte { return fileOf(t, 17, image, nil, build) }
	twice := func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Add(x, x) }
	card := func(entries ...string) []byte {
		c := map[string]string{}
		for i := 0; i < len(entries); i += 2 {
			c[entries[i]] = entries[i+1]
		}
		return fileOf(t, 17, image, c, output(twice))
	}
	numbered := func(text string) []byte {
		return fileOf(t, 17, image, map[string]string{"ddiff.params.gain": text}, halves)
	}
	for name, c := range map[string]struct {
		data   []byte
		target error
		want   string
	}{
		"text":        {[]byte("not a model"), modelfile.ErrModel, "not an ONNX file"},
		"empty":       {nil, modelfile.ErrModel, "no graph"},
		"no y":        {plain(func(g *onnx.Graph, x onnx.Value) { g.Output("z", twice(g, x)) }), operator.ErrFile, "its outputs are z, want y alone"},
		"x of rank 3": {fileOf(t, 17, image[1:], nil, func(g *onnx.Graph, x onnx.Value) { g.Output("y", x) }), operator.ErrFile, "want an image batch x"},
		"two outputs": {plain(func(g *onnx.Graph, x onnx.Value) { g.Output("y", x); g.Output("gx", x) }), operator.ErrFile, "its outputs are y, gx, want y alone; export it without others"},
		"two kernels": {plain(func(g *onnx.Graph, _ onnx.Value) {
			k, l := g.Input("k", onnx.Float, 1, 4), g.Input("l", onnx.Float, 1, 4)
			g.Output("y", g.Add(k, l))
		}), operator.ErrFile, "k and l differ from item to item"},
		"no images":          {fileOf(t, 17, []int{0, 3, 16, 16}, nil, output(twice)), operator.ErrFile, "the batch of x is 0"},
		"no rows":            {fileOf(t, 17, []int{1, 3, 0, 16}, nil, output(twice)), operator.ErrFile, "is for images x [1, 3, 0, 16]"},
		"no columns":         {fileOf(t, 17, []int{1, 3, 16, 0}, nil, output(twice)), operator.ErrFile, "is for images x [1, 3, 16, 0]"},
		"no channels":        {fileOf(t, 17, []int{1, 0, 16, 16}, nil, output(twice)), operator.ErrFile, "the channels of x are free"},
		"whole batch":        {fileOf(t, 17, []int{4, 3, 16, 16}, nil, output(twice)), operator.ErrFile, "the batch of x is 4"},
		"free channels":      {fileOf(t, 17, []int{1, -1, 16, 16}, nil, func(g *onnx.Graph, x onnx.Value) { g.Output("y", x) }), operator.ErrFile, "the channels of x are free"},
		"integers":           {plain(func(g *onnx.Graph, x onnx.Value) { g.Input("n", onnx.Int64, 1); g.Output("y", x) }), operator.ErrFile, "its input n is not float32"},
		"scalar y":           {plain(func(g *onnx.Graph, _ onnx.Value) { g.Output("y", g.Scalar(1)) }), operator.ErrFile, "want float32 with 2 to 4 dimensions"},
		"huge y":             {plain(func(g *onnx.Graph, _ onnx.Value) { g.Output("y", g.Input("k", onnx.Float, 1, 1<<27)) }), operator.ErrFile, "at most 67108864 elements"},
		"free y":             {plain(func(g *onnx.Graph, _ onnx.Value) { g.Output("y", g.Input("k", onnx.Float, 1, -1)) }), operator.ErrFile, "name it after a dimension of x"},
		"metric":             {card("ddiff.kind", "metric"), operator.ErrFile, `ddiff.kind is "metric"`},
		"range":              {card("ddiff.range", "0..1"), operator.ErrFile, "scale x inside the operator"},
		"multiple":           {card("ddiff.multiple_of", "0"), operator.ErrFile, `ddiff.multiple_of is "0"`},
		"size and multiple":  {card("ddiff.multiple_of", "32"), operator.ErrFile, "multiples of 32"},
		"kernel name":        {card("ddiff.parameter", "k"), operator.ErrFile, `ddiff.parameter is "k"`},
		"unknown parameter":  {card("ddiff.params.gain", "1; [0, 2]"), operator.ErrFile, "no input of rank 0 has this name"},
		"no declaration":     {plain(halves), operator.ErrFile, "add ddiff.params.gain"},
		"short declaration":  {numbered("1"), operator.ErrFile, `want "DEFAULT; RANGE; DOC"`},
		"bad range":          {numbered("1; 0 to 2"), operator.ErrFile, `the range "0 to 2"`},
		"infinite range":     {numbered("1; [0, inf]"), operator.ErrFile, `the range "[0, inf]"`},
		"default":            {numbered("3; [0, 2]"), operator.ErrFile, "the default 3 is outside [0, 2]"},
		"default is no text": {numbered("much; [0, 2]"), operator.ErrFile, `the default "much" is not a number`},
		"no rule": {plain(func(g *onnx.Graph, x onnx.Value) {
			g.Output("y", g.Apply("Hardmax", onnx.Float, x.Dims, nil, x))
		}), onnx.ErrNoGradient, "Hardmax_"},
		"odd sides": {fileOf(t, 17, []int{1, 3, 15, 15}, nil, output(twice)), operator.ErrFile, "both sides must be even"},
	} {
		_, err := operator.Load("own.onnx", c.data)
		if !errors.Is(err, c.target) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "own.onnx") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// TestUsableFiles: the ends of the supported ranges.
func TestUsableFiles(t *testing.T) {
	t.Parallel()
	for _, opset := range []int{onnx.MinOpset, onnx.MaxOpset} {
		f := load(t, fileOf(t, opset, []int{1, 1, 8, 8}, nil, output(func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Neg(x) })))
		if len(f.Parameters) != 0 {
			t.Errorf("operator set %d: %+v", opset, f)
		}
	}
	inferred := load(t, fileOf(t, 17, []int{-1, 3, 16, 16}, nil, output(func(g *onnx.Graph, x onnx.Value) onnx.Value {
		y := g.Slice(x, 3, 2, 12)
		return onnx.Value{Name: y.Name, DType: y.DType, Dims: []int{-1, 3, -1, -1}}
	})))
	if op, err := inferred.New(operator.Shape{Channels: 3, Height: 16, Width: 16}); err != nil || !slices.Equal(op.Measurement, []int{3, 16, 10}) {
		t.Errorf("sizes of y that the file leaves free: %v, %v", op, err)
	}
	number := load(t, fileOf(t, 17, []int{1, 3, 16, 16}, gainCard, func(g *onnx.Graph, x onnx.Value) {
		g.Output("y", g.Mul(x, g.Input("gain", onnx.Float, 1)))
	}))
	if len(number.Parameters) != 1 {
		t.Errorf("parameters %v of an input of shape [1]", number.Parameters)
	}
	_, err := operator.Load("own.onnx", fileOf(t, 17, []int{1, 3, 16, 16}, gainCard, func(g *onnx.Graph, x onnx.Value) {
		g.Output("y", g.Mul(x, g.Input("gain", onnx.Float, 16)))
	}))
	if !errors.Is(err, operator.ErrFile) || !strings.Contains(err.Error(), "the batch of gain is 16") {
		t.Errorf("an input of shape [16]: %v", err)
	}
}

// TestWrongGradient: an operation that counts as constant and is not.
func TestWrongGradient(t *testing.T) {
	t.Parallel()
	f := load(t, fileOf(t, 17, []int{1, 1, 8, 8}, nil, output(func(g *onnx.Graph, x onnx.Value) onnx.Value {
		levels := g.Apply("Floor", onnx.Float, x.Dims, nil, g.Mul(x, g.Scalar(1e4)))
		return g.Add(x, g.Mul(levels, g.Scalar(-3e-4)))
	})))
	op, err := operator.Set{f.Definition("wrong")}.New("wrong", nil, operator.Shape{Channels: 1, Height: 8, Width: 8})
	must(t, err)
	if r, err := op.CheckGradient(t.Context(), onnxtest.Runtime(t)); !errors.Is(err, operator.ErrGradient) || !(r.Error >= 1) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestFilesThatCannotRun: Verify finds what a graph does not show.
func TestFilesThatCannotRun(t *testing.T) {
	t.Parallel()
	rt := onnxtest.Runtime(t)
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"NaN": {fileOf(t, 17, []int{1, 3, 16, 16}, nil, output(func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Log(x) })), "is NaN"},
		"unknown attribute": {fileOf(t, 17, []int{1, 3, 16, 16}, nil, output(func(g *onnx.Graph, x onnx.Value) onnx.Value {
			return g.Apply("Floor", onnx.Float, x.Dims, map[string]any{"sharp": 1}, x)
		})), "sharp"},
		"another shape": {fileOf(t, 17, []int{1, 3, 16, 16}, nil, output(func(g *onnx.Graph, x onnx.Value) onnx.Value {
			return g.Apply("Floor", onnx.Float, []int{1, 3, 16, 8}, nil, x)
		})), "cannot run"},
		"the other image": {fileOf(t, 17, []int{-1, 3, 16, 16}, nil, output(func(g *onnx.Graph, x onnx.Value) onnx.Value {
			return g.Minus(x, g.Apply("ReduceMean", onnx.Float, []int{1, 1, 1, 1}, nil, x))
		})), "y of an image depends on the others in its batch"},
		"chance": {fileOf(t, 17, []int{1, 3, 16, 16}, nil, output(func(g *onnx.Graph, x onnx.Value) onnx.Value {
			return g.Add(x, g.Apply("RandomNormalLike", onnx.Float, []int{1, 3, 16, 16}, nil, g.Const(make([]float32, 3*16*16), 1, 3, 16, 16)))
		})), "y of an image depends on the others in its batch, or on chance"},
		"values of many GiB": {fileOf(t, 17, []int{1, 3, 16, 16}, nil, output(func(g *onnx.Graph, x onnx.Value) onnx.Value {
			return g.Slice(g.Expand(x, 1_000_000, 3, 16, 16), 0, 7, 8)
		})), "its values need about "},
		"values of more bytes than an int": {fileOf(t, 17, []int{1, 3, 16, 16}, nil, output(func(g *onnx.Graph, x onnx.Value) onnx.Value {
			return g.Slice(g.Expand(g.Slice(g.Expand(x, 1<<61, 3, 16, 16), 0, 7, 8), 1, 3, 16, 16), 0, 0, 1)
		})), "its values need about "},
	} {
		err := load(t, c.data).Verify(t.Context(), rt)
		if !errors.Is(err, operator.ErrFile) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}
