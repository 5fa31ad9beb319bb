package testbed

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCost measures small campaigns: a row for each mode and batch size, and a last line that scripts can read.
func TestCost(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	o := costOptions{
		images: filepath.Join(root, "examples", "images"), program: program, task: "gaussian_deblur",
		size: 32, steps: 2, threads: 1, batches: []int{1, 3}, rounds: 1, stdout: &out,
	}
	if err := measureCost(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 1+2*3+1 {
		t.Fatalf("%d lines, want 8\n%s", len(lines), out.String())
	}
	const number, mib = `\d+\.\d+`, `[1-9]\d+`
	for i, want := range []string{"ddiff", "pixel_dc", "latent_dc", "ddiff", "pixel_dc", "latent_dc"} {
		batch := []string{"1", "3"}[i/3]
		pattern := `^` + want + ` +` + batch + ` +` + number + ` +` + number + `\.\.` + number + ` +` + number + ` +` + mib + `$`
		if !regexp.MustCompile(pattern).MatchString(lines[1+i]) {
			t.Errorf("line %q does not match %s", lines[1+i], pattern)
		}
		if want == "ddiff" && !strings.Contains(lines[1+i], " 1.000 ") {
			t.Errorf("the ratio of ddiff to itself: %q", lines[1+i])
		}
	}
	var pairs []string
	for _, batch := range []string{"1", "3"} {
		for _, mode := range []string{"pixel_dc", "latent_dc"} {
			pairs = append(pairs, mode+"_b"+batch+"="+number, mode+"_b"+batch+"_mib="+mib)
		}
	}
	if want := "^" + strings.Join(pairs, " ") + "$"; !regexp.MustCompile(want).MatchString(lines[7]) {
		t.Errorf("last line %q does not match %s", lines[7], want)
	}
	o.images = t.TempDir()
	if err := measureCost(t.Context(), o); err == nil || !strings.Contains(err.Error(), "contains no PNG; name a directory") {
		t.Errorf("a directory without photographs: %v", err)
	}
}
