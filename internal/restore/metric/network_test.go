package metric

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxpb"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/raster"
)

const lpipsFile = "testdata/lpips_alex.onnx"

func openTest(t *testing.T, path string) *Network {
	t.Helper()
	n, err := OpenNetwork(t.Context(), onnxtest.Runtime(t), path)
	must(t, err)
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// TestNetworkAgreesWithTorch compares with the distances of tools/lpips_vectors.py, from several goroutines at once.
func TestNetworkAgreesWithTorch(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/lpips.json")
	must(t, err)
	var want map[string]float64
	must(t, json.Unmarshal(data, &want))
	if len(want) < 4 {
		t.Fatalf("%d pairs", len(want))
	}
	n := openTest(t, lpipsFile)
	if id := n.ID(); !strings.HasPrefix(id, "lpips_alex@1:") || len(id) != len("lpips_alex@1:")+MinDigest || n.MinSize != 31 {
		t.Errorf("id %s, smallest side %d", id, n.MinSize)
	}
	var group sync.WaitGroup
	for name, d := range want {
		for range 2 {
			group.Go(func() {
				x := decode(t, name+"_x.png")
				y := x
				if name != "equal" {
					y = decode(t, name+"_y.png")
				}
				got, err := n.Score(t.Context(), x, y)
				if err != nil || !(math.Abs(got-d) <= 1e-5) {
					t.Errorf("%s: %v, %v; want %v", name, got, err, d)
				}
				if swapped, err := n.Score(t.Context(), y, x); err != nil || !(math.Abs(swapped-got) <= 1e-6) {
					t.Errorf("%s: %v, arguments swapped %v, %v", name, got, swapped, err)
				}
			})
		}
	}
	group.Wait()
	// Values beyond the range are clipped, as in the other metrics.
	clipped, err := n.Score(t.Context(), constant(3, 40, 40, 1), constant(3, 40, 40, 9))
	if err != nil || clipped != 0 {
		t.Errorf("clipped: %v, %v", clipped, err)
	}
	// Without clipping they count. Within the range both scores are equal.
	if d, err := n.ScoreUnclipped(t.Context(), constant(3, 40, 40, 1), constant(3, 40, 40, 9)); err != nil || !(d >= 1e-3) {
		t.Errorf("not clipped: %v, %v", d, err)
	}
	x, y := decode(t, "noise_x.png"), decode(t, "noise_y.png")
	if d, err := n.ScoreUnclipped(t.Context(), x, y); err != nil || !(math.Abs(d-want["noise"]) <= 1e-5) {
		t.Errorf("within the range: %v, %v, want %v", d, err, want["noise"])
	}
	if id, want := n.UnclippedID(), "lpips_alex@1_unclipped:"+n.SHA256[:MinDigest]; id != want {
		t.Errorf("id %s, want %s", id, want)
	}
}

// TestNetworkChangesSize: a score does not depend on the sizes of the pairs before, of which some differ in one side only.
func TestNetworkChangesSize(t *testing.T) {
	t.Parallel()
	pair := func(height, width int) (x, y *raster.Image) {
		x, y = constant(3, height, width, 0), constant(3, height, width, 0)
		for i := range x.Pix {
			x.Pix[i], y.Pix[i] = float32(i%7)/7, float32(i%11)/11
		}
		return x, y
	}
	used := openTest(t, lpipsFile)
	for _, size := range [][2]int{{40, 40}, {40, 48}, {40, 44}, {48, 44}, {44, 44}, {44, 44}} {
		x, y := pair(size[0], size[1])
		got, err := used.Score(t.Context(), x, y)
		must(t, err)
		want, err := openTest(t, lpipsFile).Score(t.Context(), x, y)
		if err != nil || got != want {
			t.Errorf("%v: %v, a new network %v, %v", size, got, want, err)
		}
	}
}

func TestNetworkRefusesImages(t *testing.T) {
	t.Parallel()
	n := openTest(t, lpipsFile)
	broken := constant(3, 40, 40, 0)
	broken.Pix[7] = float32(math.NaN())
	for _, tt := range []struct {
		name string
		x, y *raster.Image
		want error
	}{
		{"other width", constant(3, 40, 40, 0), constant(3, 40, 41, 0), ErrShape},
		{"two channels", constant(2, 40, 40, 0), constant(2, 40, 40, 0), ErrUndefined},
		{"smallest", constant(3, 40, 31, 0), constant(3, 40, 31, 0), nil},
		{"too small", constant(3, 40, 30, 0), constant(3, 40, 30, 0), ErrTooSmall},
		{"NaN", constant(3, 40, 40, 0), broken, raster.ErrNotFinite},
	} {
		_, err := n.Score(t.Context(), tt.x, tt.y)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if errors.Is(err, raster.ErrNotFinite) && !strings.Contains(err.Error(), "value 7 of image 2 is NaN") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestOpenNetworkRefuses damages a file in the ways that users meet.
func TestOpenNetworkRefuses(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile(lpipsFile)
	must(t, err)
	with := func(key, value string) []byte {
		return onnxtest.WithMetadata(t, good, map[string]string{"ddiff." + key: value})
	}
	prior, err := os.ReadFile("../prior/bundled/prior.onnx")
	must(t, err)
	fixed := func(axis int, side int64) []byte {
		m := &onnxpb.ModelProto{}
		must(t, proto.Unmarshal(good, m))
		m.Graph.Input[1].GetType().GetTensorType().Shape.Dim[axis].Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: side}
		data, err := proto.Marshal(m)
		must(t, err)
		return data
	}
	for name, tt := range map[string]struct {
		data  []byte
		want  error
		words string
	}{
		"not ONNX":         {[]byte("no network"), modelfile.ErrModel, "not an ONNX file"},
		"cut short":        {good[:len(good)/2], modelfile.ErrModel, "cut short"},
		"a prior":          {prior, ErrNetwork, "ddiff.kind"},
		"name with a path": {with("metric", "../x"), ErrNetwork, "want a name such as lpips_alex"},
		"no version":       {with("metric_version", "new"), ErrNetwork, `ddiff.metric_version is "new"`},
		"fixed height":     {fixed(2, 64), ErrNetwork, "input 2 is y [-1 3 64 -1]"},
		"fixed width":      {fixed(3, 64), ErrNetwork, "input 2 is y [-1 3 -1 64]"},
		"no rows":          {fixed(2, 0), ErrNetwork, "input 2 is y [-1 3 0 -1]"},
		"no columns":       {fixed(3, 0), ErrNetwork, "input 2 is y [-1 3 -1 0]"},
		"other range":      {with("range", "0..1"), ErrNetwork, "only -1..1 is supported"},
	} {
		path := filepath.Join(t.TempDir(), "m.onnx")
		must(t, os.WriteFile(path, tt.data, 0o644))
		_, err := OpenNetwork(t.Context(), onnxtest.Runtime(t), path)
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.words) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with the path and %q", name, err, tt.words)
		}
	}
	if _, err := OpenNetwork(t.Context(), onnxtest.Runtime(t), filepath.Join(t.TempDir(), "missing.onnx")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	changed := filepath.Join(t.TempDir(), "m.onnx")
	must(t, os.WriteFile(changed, with("license", "other"), 0o644))
	if a, b := openTest(t, lpipsFile).ID(), openTest(t, changed).ID(); a == b {
		t.Errorf("two files have the id %s", a)
	}
}
