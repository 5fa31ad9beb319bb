package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/manifest"
	"ddiff/restore/metric"
	"ddiff/restore/raster"
)

// degradedPhotographs are the photographs and tasks of TestRestorePhotographs.
func degradedPhotographs() [][2]string {
	return [][2]string{
		{"coffee", "super_resolution"}, {"chelsea", "super_resolution"}, {"astronaut", "gaussian_deblur"}, {"rocket", "gaussian_deblur"},
		{"coffee", "motion_deblur"}, {"retina", "motion_deblur"}, {"astronaut", "inpaint_random"}, {"chelsea", "inpaint_random"},
		{"rocket", "inpaint_box"}, {"retina", "hdr"},
	}
}

// TestRestorePhotographs degrades photographs at 128×128 with noise of sigma 0.05, writes them as 8-bit PNG, with mask or kernel
// beside them, and restores the files: each restoration is closer to the hidden truth than its input, or than the bicubic
// enlargement of a small one. `make restore-photographs` restores all ten, the tests of the package the first.
func TestRestorePhotographs(t *testing.T) {
	t.Parallel()
	photos := degradedPhotographs()
	if os.Getenv("DDIFF_RESTORE_PHOTOGRAPHS") != "all" {
		photos = photos[:1]
	}
	for _, p := range photos {
		name, task := p[0], p[1]
		dir := t.TempDir()
		out := filepath.Join(dir, "out")
		e := ddiff(t, "run", photograph(name), "--quiet", "--size", "128", "--fit", "resize", "--task", task, "--steps", "2", "--out", out)
		wantCode(t, e, 0)
		var truth, restored *raster.Image
		args, before := []string{"restore", filepath.Join(dir, "photo.png"), "--quiet", "--task", task}, 0.0
		for id, r := range wantItems(t, out, 1) {
			copyFile(t, file(out, id, manifest.FileMeasurement), filepath.Join(dir, "photo.png"))
			truth = picture(t, file(out, id, manifest.FileTruth))
			for _, draw := range []string{"mask", "kernel"} {
				if _, ok := r.Artifacts[draw+".npy"]; ok {
					args = append(args, "--"+draw, file(out, id, draw+".npy"))
				}
			}
			if task == "super_resolution" {
				before = *r.Metrics.BaselinePSNR
			} else {
				before = psnr(t, truth, picture(t, filepath.Join(dir, "photo.png")))
			}
		}
		e = ddiff(t, args...)
		wantCode(t, e, 0)
		restored = picture(t, filepath.Join(dir, "photo.restored.png"))
		after := psnr(t, truth, restored)
		fmt.Printf("photo=%s task=%s input=%.2f restored=%.2f %s\n", name, task, before, after, e.stdout[strings.LastIndex(e.stdout, "warned="):len(e.stdout)-1])
		if after <= before {
			t.Errorf("%s, %s: PSNR %.2f dB, the input has %.2f dB", name, task, after, before)
		}
	}
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
