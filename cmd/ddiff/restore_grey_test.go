package main_test

import (
	"bytes"
	"image/color"
	"image/png"
	"path/filepath"
	"strings"
	"testing"
)

// TestRestoreGrey: a grey picture is the measurement of colorize and demosaic, and the restored picture is in colour. A mask of another size
// suits inpaint. Passports hold, and a replay gives the same bits.
func TestRestoreGrey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	small, mask := filepath.Join(dir, "small.png"), filepath.Join(dir, "mask.npy")
	write(t, small, deepGrey(t)) // 18×12 pixels
	write(t, mask, array(t, 1, 1, 4, 6))
	for task, c := range map[string]struct {
		args  []string
		model color.Model
	}{
		"colorize": {nil, color.RGBA64Model}, "demosaic": {[]string{"--param", "red_row=1"}, color.RGBA64Model},
		"denoise": {nil, color.Gray16Model}, "inpaint": {[]string{"--mask", mask}, color.Gray16Model},
	} {
		into := filepath.Join(dir, task)
		e := ddiff(t, append([]string{"restore", small, "--task", task, "--steps", "3", "--threads", "1", "--out", into}, c.args...)...)
		wantCode(t, e, 0)
		target := filepath.Join(into, "small.restored.png")
		config, err := png.DecodeConfig(bytes.NewReader(read(t, target)))
		if err != nil || config.Width != 18 || config.Height != 12 || config.ColorModel != c.model {
			t.Errorf("%s: the restored picture has %d×%d pixels of %v, %v", task, config.Width, config.Height, config.ColorModel, err)
		}
		wantCode(t, ddiff(t, "verify", target), 0)
		wantLine(t, ddiff(t, "replay", target, "--threads", "1"), "replay=bit-equal")
	}
}

// TestRunGrey: simulated measurements of one channel, and their report.
func TestRunGrey(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	e := ddiff(t, "run", "--images", photographs(t, "coffee"), "--size", "32", "--task", "colorize,demosaic,super_resolution_area,denoise",
		"--method", "ddiff,ddrm", "--steps", "3", "--threads", "1", "--out", out)
	wantCode(t, e, 0)
	for _, r := range wantItems(t, out, 8) {
		if r.Metrics.PSNR == nil || r.Metrics.BaselinePSNR == nil || r.Metrics.Residual == nil {
			t.Errorf("%s, %s: metrics %+v", r.Item.Task, r.Item.Method, r.Metrics)
		}
	}
	wantCode(t, ddiff(t, "verify", out), 0)
	wantCode(t, ddiff(t, "report", out, "--format", "html", "--out", filepath.Join(t.TempDir(), "page")), 0)
	e = ddiff(t, "run", "--images", photographs(t, "coffee"), "--size", "32", "--task", "all", "--dry-run", "--json", "--out", filepath.Join(t.TempDir(), "out"))
	wantCode(t, e, 0)
	if !strings.Contains(e.stdout, `"demosaic"`) || strings.Contains(e.stdout, `"inpaint"`) {
		t.Errorf("--task all has the tasks of %s", e.stdout)
	}
	e = ddiff(t, "run", "--images", photographs(t, "coffee"), "--size", "32", "--task", "inpaint", "--steps", "3", "--threads", "1", "--out", filepath.Join(t.TempDir(), "out"))
	wantCode(t, e, 2)
	wantMessage(t, e, "task inpaint needs a mask; give --mask, dataset.mask of the campaign file, or the column mask of a list")
}
