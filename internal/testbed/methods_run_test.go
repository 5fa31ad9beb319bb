package testbed

import (
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestMethodsCommand runs the campaigns in a small form, and again: the second run has the same report.
func TestMethodsCommand(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	o := methodsOptions{
		out: filepath.Join(t.TempDir(), "methods"), program: program, stdout: &out,
		args: []string{"--size", "32", "--limit", "2", "--steps", "3", "--threads", "1", "--task", "super_resolution", "--method", "ddiff,daps"},
	}
	for _, name := range []string{"equal_cost", "published", "time"} {
		o.campaigns = append(o.campaigns, filepath.Join(root, "examples", "methods", name+".yaml"))
	}
	if err := runMethods(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	first := out.String()
	if !regexp.MustCompile(`\nmethods=2 tasks=1 ddiff_best_or_tied=[01]\n$`).MatchString(first) || !strings.Contains(first, "share of the time") {
		t.Errorf("output\n%s", first)
	}
	out.Reset()
	if err := runMethods(t.Context(), o); err != nil || out.String() != first {
		t.Errorf("the rerun prints another report: %v\n%s", err, out.String())
	}
}

// The table has the fewest evaluations whose mean is that of daps at least, or says that none is.
func TestMethodsTimes(t *testing.T) {
	t.Parallel()
	row := func(task, method, network, psnr, seconds string) map[string]string {
		return map[string]string{"task": task, "method": method, "network": network, "psnr": psnr, "seconds": seconds}
	}
	rows := []map[string]string{
		row("hdr", "ddiff", "50", "21", "3"), row("hdr", "ddiff", "20", "18", "1"), row("hdr", "ddiff", "20", "22", "2"), row("hdr", "ddiff", "50", "21", "5"),
		row("hdr", "ddiff", "100", "23", "9"), row("hdr", "daps", "100", "19", "20"), row("hdr", "daps", "100", "22", "12"),
		row("blur", "ddiff", "20", "18", "1"), row("blur", "ddiff", "50", "18.5", "2"), row("blur", "ddiff", "100", "18.2", "4"), row("blur", "daps", "100", "19", "8"), row("blur", "daps", "1000", "18.5", "80"),
	}
	var out strings.Builder
	if err := writeTimes(&out, rows); err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Fields(line))
	}
	want := [][]string{
		{"blur", "100", "19.00", "8.00", "not", "reached", "18.50", "at", "most,", "50"},
		{"blur", "1000", "18.50", "80.00", "50", "18.50", "2.00", "0.03"},
		{"hdr", "100", "20.50", "16.00", "50", "21.00", "4.00", "0.25"},
	}
	if !reflect.DeepEqual(got[1:], want) {
		t.Errorf("table %q, want %q", got[1:], want)
	}
	rows[0]["psnr"] = ""
	if err := writeTimes(&out, rows); err == nil {
		t.Error("a row without a PSNR is accepted")
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
