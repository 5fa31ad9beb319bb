package testbed

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestMethodsCommand runs both campaigns in a small form, and again: the second run has the same report.
func TestMethodsCommand(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	o := methodsOptions{
		out: filepath.Join(t.TempDir(), "methods"), program: program, stdout: &out,
		args: []string{"--size", "32", "--limit", "2", "--steps", "3", "--threads", "1", "--task", "super_resolution", "--method", "ddiff,diffpir"},
	}
	for _, name := range []string{"equal_cost", "published"} {
		o.campaigns = append(o.campaigns, filepath.Join(root, "examples", "methods", name+".yaml"))
	}
	if err := runMethods(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	first := out.String()
	if !regexp.MustCompile(`\nmethods=2 tasks=1 ddiff_best_or_tied=[01]\n$`).MatchString(first) || !strings.Contains(first, "diffpir") {
		t.Errorf("output\n%s", first)
	}
	out.Reset()
	if err := runMethods(t.Context(), o); err != nil || out.String() != first {
		t.Errorf("the rerun prints another report: %v\n%s", err, out.String())
	}
}

// ddiff counts where it is best, and where the interval of its distance to the best contains zero.
func TestMethodsLine(t *testing.T) {
	t.Parallel()
	row := func(task, method string, image int, psnr float64) map[string]string {
		return map[string]string{"task": task, "method": method, "image": strconv.Itoa(image), "psnr": strconv.FormatFloat(psnr, 'g', -1, 64)}
	}
	var rows []map[string]string
	for image, noise := range []float64{-1, 0, 1} {
		level := 20 + 5*float64(image)
		rows = append(rows,
			row("best", "ddiff", image, level+1), row("best", "dps", image, level),
			row("tied", "ddiff", image, level), row("tied", "dps", image, level+0.1+noise), row("tied", "daps", image, level-3),
			row("behind", "ddiff", image, level), row("behind", "dps", image, level+1+0.01*noise), row("behind", "daps", image, level-3),
		)
	}
	if got, err := methodsLine(rows); err != nil || got != "methods=3 tasks=3 ddiff_best_or_tied=2" {
		t.Errorf("%q, %v", got, err)
	}
	for name, bad := range map[string][]map[string]string{
		"a failure":      append(rows[:3:3], map[string]string{"task": "best", "method": "ddiff", "image": "9", "outcome": "failed"}),
		"an image twice": append(rows[:3:3], rows[0]),
		"a lack":         rows[1:],
	} {
		if got, err := methodsLine(bad); err == nil {
			t.Errorf("%s is accepted: %s", name, got)
		}
	}
}
