package job

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/raster/metadata"
	"ddiff/internal/restore/solver"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// TestResidualCountsObservedPixels: the values of a measurement in dropped pixels, which may be anything, do not change
// the residual of inpainting.
func TestResidualCountsObservedPixels(t *testing.T) {
	t.Parallel()
	op, err := operator.Builtin().New(operator.InpaintRandom, nil, operator.Shape{Channels: 3, Height: 8, Width: 8})
	must(t, err)
	const sigma, off = 0.05, 0.1
	for name, hole := range map[string]float32{"zeros": 0, "ones": 1, "infinite": float32(math.Inf(1))} {
		tk := &Job{Item: item.Item{Sigma: sigma}, Op: op}
		tk.Problem.Draw = make([]float32, 64)
		tk.Problem.Y, tk.applied = make([]float32, 192), make([]float32, 192)
		for i := range tk.Problem.Y {
			if i%64 == 5 {
				tk.Problem.Draw[5] = 1
				tk.Problem.Y[i], tk.applied[i] = 0.5+off, 0.5
			} else {
				tk.Problem.Y[i] = hole
			}
		}
		m, err := tk.score()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want := off*off - sigma*sigma; !(math.Abs(m["residual"]-want) <= 1e-6) {
			t.Errorf("%s: residual %v, want %v", name, m["residual"], want)
		}
	}
}

// solved returns a task with a solution, and a ground truth that differs from it.
func solved(t *testing.T, name string, side int) *Job {
	t.Helper()
	op, err := operator.Builtin().New(name, nil, operator.Shape{Channels: 3, Height: side, Width: side})
	must(t, err)
	size := 1
	for _, n := range op.Measurement {
		size *= n
	}
	tk := &Job{
		Op: op, truth: raster.New(3, side, side), applied: make([]float32, size),
		Problem: solver.Problem{Y: make([]float32, size)}, Solution: solver.Solution{X: make([]float32, 3*side*side)},
		Item: item.Item{ID: "item", Name: "a", Sigma: 0.1, Width: side, Height: side},
	}
	for i := range tk.truth.Pix {
		tk.truth.Pix[i] = float32(i%17)/17 - 0.5
		tk.Solution.X[i] = tk.truth.Pix[i] + 0.01*float32(i%3)
	}
	for i := range tk.Problem.Y {
		tk.Problem.Y[i] = float32(i%5) / 10
		tk.applied[i] = tk.Problem.Y[i] + 0.2
	}
	return tk
}

// An image has the scores that its size, its operator and its ground truth permit.
func TestScores(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                        string
		side                        int
		truth, ssim, haar, baseline bool
	}{
		{operator.SuperResolution, 32, true, true, true, true},
		{operator.SuperResolution, 8, true, false, false, true},
		{operator.SuperResolution, 32, false, false, false, false},
		{operator.PhaseRetrieval, 32, true, true, true, false},
	} {
		tk := solved(t, tt.name, tt.side)
		if !tt.truth {
			tk.truth = nil
		}
		m, err := tk.score()
		if err != nil {
			t.Errorf("%s of %d pixels: %v", tt.name, tt.side, err)
			continue
		}
		if !(math.Abs(m["residual"]-0.03) <= 1e-6) {
			t.Errorf("%s: residual %g", tt.name, m["residual"])
		}
		has := []bool{m.Has("psnr"), m.Has("psnr_y"), m.Has("ssim"), m.Has("haarpsi"), m.Has("baseline_psnr"), m.Has("baseline_ssim")}
		if want := []bool{tt.truth, tt.truth, tt.ssim, tt.haar, tt.baseline, tt.baseline && tt.ssim}; !slices.Equal(has, want) {
			t.Errorf("%s of %d pixels: scores %v, want %v", tt.name, tt.side, has, want)
		}
		if m.Has("baseline_psnr") && !(m["psnr"] > m["baseline_psnr"]+5) {
			t.Errorf("%s: the scores are %g and %g dB", tt.name, m["psnr"], m["baseline_psnr"])
		}
	}
	nan := float32(math.NaN())
	for name, change := range map[string]func(*Job){
		"score residual":           func(tk *Job) { tk.applied = tk.applied[1:] },
		"score the restored image": func(tk *Job) { tk.Solution.X[0] = nan },
		"compare 3 channels":       func(tk *Job) { tk.truth = raster.New(3, 16, 16) },
		"score the degraded image": func(tk *Job) { tk.Problem.Y[7] = nan },
	} {
		tk := solved(t, operator.SuperResolution, 32)
		change(tk)
		if m, err := tk.score(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want %s; scores %+v", err, name, m)
		}
	}
}

// filesOf encodes the files beside a result.
func filesOf(tk *Job) ([]Artifact, error) {
	arrays, err := tk.arrays()
	if err != nil {
		return nil, err
	}
	return tk.artifacts(arrays)
}

// The files beside a result are those that the item has.
func TestArtifacts(t *testing.T) {
	t.Parallel()
	tk := solved(t, operator.SuperResolution, 32)
	names := func() string {
		files, err := filesOf(tk)
		must(t, err)
		out := ""
		for _, f := range files {
			if len(f.Data) == 0 {
				t.Errorf("%s is empty", f.Name)
			}
			out += f.Name + " "
		}
		return out
	}
	all := fmt.Sprintln(item.FileTruth, item.FileMeasurement, item.FileTrace, item.FileData)
	if got := names(); strings.TrimSpace(got) != strings.TrimSpace(all) {
		t.Errorf("files %s", got)
	}
	tk.truth, tk.draw = nil, &operator.Draw{Name: drawMask, Dims: []int{1, 2}, Data: []float32{0, 1}}
	if got := names(); strings.Contains(got, item.FileTruth) || !strings.Contains(got, "mask.npy") {
		t.Errorf("files %s", got)
	}
	tk.draw.Dims = []int{3}
	if _, err := filesOf(tk); err == nil || !strings.Contains(err.Error(), "encode "+"mask.npy") {
		t.Errorf("a mask of another size: %v", err)
	}
}

// TestTruthFile: the truth's file is the image's own where it has the working size and nothing but pixels; any other is encoded, so that no metadata comes along.
func TestTruthFile(t *testing.T) {
	t.Parallel()
	img := raster.New(3, 16, 16)
	for i := range img.Pix {
		img.Pix[i] = float32(i%256)/127.5 - 1
	}
	own, err := raster.EncodePNG(img)
	must(t, err)
	noted, err := metadata.InsertPNG(own, []metadata.PNGChunk{{Kind: "tEXt", Data: []byte("Author\x00me")}}, nil)
	must(t, err)
	for name, c := range map[string]struct {
		file []byte
		side int
		same bool
	}{"plain": {own, 16, true}, "with text": {noted, 16, false}, "scaled": {own, 8, false}} {
		tk := solved(t, operator.SuperResolution, c.side)
		tk.Item.Image, tk.Item.Fit = &item.Source{}, item.FitCenterCrop
		must(t, Loader{Engine: engineOf(t)}.decodeTruth(tk, c.file))
		files, err := filesOf(tk)
		must(t, err)
		if files[0].Name != item.FileTruth || bytes.Equal(files[0].Data, c.file) != c.same || !raster.IsPlain(files[0].Data) {
			t.Errorf("%s: %s of %d bytes of a file of %d", name, files[0].Name, len(files[0].Data), len(c.file))
		}
	}
}
