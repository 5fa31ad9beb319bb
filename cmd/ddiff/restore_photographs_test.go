package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ddiff/internal/restore/metric"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
)

// degradation is a photograph of examples/unseen with its task.
type degradation struct {
	photo, task string
	sigma       float64
	quality     int // of a JPEG file; 0: noise is added
}

func (d degradation) String() string {
	if d.quality > 0 {
		return fmt.Sprintf("JPEG, quality %d", d.quality)
	}
	return fmt.Sprintf("σ = %g", d.sigma)
}

// degradations are the photographs of TestRestorePhotographs.
func degradations() []degradation {
	return []degradation{
		{"windmill", "gaussian_deblur", 0.05, 0}, {"solar_cooker", "motion_deblur", 0.05, 0}, {"dam", "super_resolution", 0.05, 0},
		{"camera", "super_resolution", 0.05, 0}, {"solar_cooker", "denoise", 0.1, 0}, {"dam", "denoise", 0.2, 0},
		{"camera", "inpaint_random", 0.05, 0}, {"dam", "inpaint_box", 0.05, 0}, {"windmill", "jpeg", 0.05, 10}, {"solar_cooker", "jpeg", 0.05, 30},
	}
}

// TestRestorePhotographs degrades photographs of 128×128 pixels, writes them as 8-bit PNG, with mask or kernel beside them, or as JPEG, and
// restores the files: each restoration is closer to the hidden truth than its input, or than the bicubic enlargement of a small one.
// `make restore-photographs` restores all of them, the tests of the package the first.
func TestRestorePhotographs(t *testing.T) {
	t.Parallel()
	kept, all := os.LookupEnv("DDIFF_RESTORE_PHOTOGRAPHS")
	photos := degradations()
	if !all {
		photos, kept = photos[:1], t.TempDir()
	}
	for _, d := range photos {
		dir := filepath.Join(kept, d.photo+"."+d.task)
		if d.quality > 0 {
			dir = filepath.Join(kept, fmt.Sprintf("%s-%d.%s", d.photo, d.quality, d.task))
		}
		must(t, os.MkdirAll(dir, 0o755))
		args, before := d.degrade(t, dir)
		e := ddiff(t, append([]string{"restore", "--quiet", "--format", "png", "--task", d.task}, args...)...)
		wantCode(t, e, 0)
		after := psnr(t, picture(t, filepath.Join(dir, "truth.png")), picture(t, filepath.Join(dir, "photo.restored.png")))
		fmt.Printf("photo=%s task=%s input=%.2f restored=%.2f %s\n", d.photo, d.task, before, after, e.stdout[strings.LastIndex(e.stdout, "warned="):len(e.stdout)-1])
		if after <= before {
			t.Errorf("%s, %s: PSNR %.2f dB, the input has %.2f dB", d.photo, d.task, after, before)
		}
	}
}

// degrade writes the truth, the degraded picture, its mask or kernel, and facts for other programs. It returns the arguments of restore, and the PSNR
// of the picture or of its enlargement.
func (d degradation) degrade(t *testing.T, dir string) (args []string, before float64) {
	t.Helper()
	source, truth := filepath.Join("..", "..", "examples", "unseen", d.photo+".png"), filepath.Join(dir, "truth.png")
	copyFile(t, source, truth)
	facts := map[string]any{"sigma": d.sigma, "degradation": d.String()}
	defer func() {
		data, err := json.Marshal(facts)
		must(t, err)
		write(t, filepath.Join(dir, "restoration.json"), data)
	}()
	if d.quality > 0 {
		photo := filepath.Join(dir, "photo.jpg")
		write(t, photo, asJPEG(t, read(t, truth), d.quality))
		return []string{photo}, psnr(t, picture(t, truth), picture(t, photo))
	}
	photo, out := filepath.Join(dir, "photo.png"), filepath.Join(dir, "degraded")
	sigma := strconv.FormatFloat(d.sigma, 'g', -1, 64)
	e := ddiff(t, "run", source, "--quiet", "--size", "128", "--fit", "resize", "--task", d.task, "--sigma", sigma, "--steps", "2", "--out", out)
	wantCode(t, e, 0)
	args = []string{photo, "--sigma", sigma}
	if d.task == "gaussian_deblur" {
		args = append(args, "--param", "std=3")
	}
	for id, r := range wantItems(t, out, 1) {
		facts["params"] = r.Item.Params
		copyFile(t, file(out, id, item.FileMeasurement), photo)
		for _, draw := range []string{"mask", "kernel"} {
			if _, ok := r.Artifacts[draw+".npy"]; ok {
				copyFile(t, file(out, id, draw+".npy"), filepath.Join(dir, draw+".npy"))
				if args = append(args, "--"+draw, filepath.Join(dir, draw+".npy")); draw == "kernel" {
					args = append(args, "--kernel-form", "correlation")
				}
			}
		}
		before = r.Metrics["baseline_psnr"] // of the enlargement
		if img, x := picture(t, photo), picture(t, truth); img.Width == x.Width {
			before = psnr(t, x, img)
		}
	}
	must(t, os.RemoveAll(out))
	return args, before
}

// asJPEG encodes a PNG as JPEG, with colours of half the resolution.
func asJPEG(t *testing.T, data []byte, quality int) []byte {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(data))
	must(t, err)
	var out bytes.Buffer
	must(t, jpeg.Encode(&out, img, &jpeg.Options{Quality: quality}))
	return out.Bytes()
}

func picture(t *testing.T, path string) *raster.Image {
	t.Helper()
	img, err := raster.Decode(read(t, path))
	must(t, err)
	return img
}

func psnr(t *testing.T, truth, img *raster.Image) float64 {
	t.Helper()
	v, err := metric.PSNR(truth, img)
	must(t, err)
	return v
}

// TestRestoreClean gives photographs without noise, in JPEG files, to restore without a task: none gets worse by 0.1 dB, and those of quality 60 and 75 better by 0.5. `make restore-photographs` gives ten
// photographs, the tests of the package two.
func TestRestoreClean(t *testing.T) {
	skipLong(t)
	t.Parallel()
	photos := []string{photograph("chelsea"), filepath.Join("..", "..", "examples", "unseen", "dam.png")}
	if _, all := os.LookupEnv("DDIFF_RESTORE_PHOTOGRAPHS"); all {
		photos = nil
		for _, folder := range []string{"images", "unseen"} {
			found, err := filepath.Glob(filepath.Join("..", "..", "examples", folder, "*.png"))
			must(t, err)
			photos = append(photos, found...)
		}
	}
	dir, files := t.TempDir(), map[string]string{} // photographs by file
	for _, photo := range photos {
		for _, quality := range []int{60, 75, 85, 90, 95, 100} {
			file := filepath.Join(dir, fmt.Sprintf("%s-%d.jpg", strings.TrimSuffix(filepath.Base(photo), ".png"), quality))
			write(t, file, asJPEG(t, read(t, photo), quality))
			files[file] = photo
		}
	}
	wantCode(t, ddiff(t, "restore", dir, "--quiet", "--threads", "1"), 0)
	restored, harmed, better := 0, 0, 0
	for file, photo := range files {
		target := strings.TrimSuffix(file, ".jpg") + ".restored.jpg"
		if _, err := os.Stat(target); err != nil {
			continue
		}
		restored++
		before, after := psnr(t, picture(t, photo), picture(t, file)), psnr(t, picture(t, photo), picture(t, target))
		fmt.Printf("clean=%s input=%.2f restored=%.2f\n", filepath.Base(file), before, after)
		if after < before-0.1 {
			harmed++
			t.Errorf("%s: PSNR %.2f dB, the file has %.2f dB", filepath.Base(file), after, before)
		}
		if after > before+0.5 {
			better++
		}
	}
	if better < 2*len(photos) {
		t.Errorf("%d of %d strongly compressed photographs are better by 0.5 dB", better, 2*len(photos))
	}
	fmt.Printf("clean=%d restored=%d harmed=%d\n", len(files), restored, harmed)
}
