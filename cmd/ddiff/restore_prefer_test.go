package main_test

import (
	"encoding/json"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRestorePrefersDetail: a picture is sharper with --prefer detail, the reason says what that costs, and other problems are refused.
func TestRestorePrefersDetail(t *testing.T) {
	t.Parallel()
	small := filepath.Join(t.TempDir(), "small.png")
	data, err := os.ReadFile(filepath.Join("..", "..", "examples", "unseen", "windmill.png"))
	must(t, err)
	write(t, small, data)
	restored := func(args ...string) (energy float64, choice string) {
		t.Helper()
		e := ddiff(t, append([]string{"restore", small, "--task", "super_resolution", "--preview", "32", "--sigma", "0.05", "--json", "--force", "--threads", "1"}, args...)...)
		wantCode(t, e, 0)
		var out struct{ Output, Choice string }
		line, _, _ := strings.Cut(e.stdout, "\n")
		must(t, json.Unmarshal([]byte(line), &out))
		f, err := os.Open(out.Output)
		must(t, err)
		defer f.Close()
		x, err := png.Decode(f)
		must(t, err)
		for i := range x.Bounds().Dy() {
			for j := 1; j < x.Bounds().Dx(); j++ {
				_, a, _, _ := x.At(j-1, i).RGBA()
				_, b, _, _ := x.At(j, i).RGBA()
				energy += math.Pow(float64(b)-float64(a), 2)
			}
		}
		return energy, out.Choice
	}
	plain, choice := restored()
	if strings.Contains(choice, "sharper") {
		t.Errorf("without --prefer: %q", choice)
	}
	for _, args := range [][]string{{}, {"--sigma", "auto"}} { // auto waits for the noise of the picture
		sharp, choice := restored(append(args, "--prefer", "detail")...)
		if !strings.Contains(choice, "0.55 dB less") {
			t.Errorf("%v: the reason is %q", args, choice)
		}
		if len(args) == 0 && !(sharp > 1.3*plain) {
			t.Errorf("gradient energy %.3g, without --prefer %.3g", sharp, plain)
		}
	}
	for want, args := range map[string][]string{
		"super_resolution by 4 or more": {"--task", "super_resolution", "--param", "factor=2", "--prefer", "detail"},
		"leave it out":                  {"--task", "denoise", "--prefer", "detail"},
		"leave out --method":            {"--task", "super_resolution", "--method", "dpir", "--prefer", "detail"},
		"valid: detail":                 {"--task", "super_resolution", "--prefer", "psnr"},
	} {
		e := ddiff(t, append([]string{"restore", small}, args...)...)
		wantCode(t, e, 2)
		if !strings.Contains(e.stderr, want) {
			t.Errorf("%v: %q, want %q", args, e.stderr, want)
		}
	}
}
