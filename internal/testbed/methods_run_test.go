package testbed

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
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
	if !regexp.MustCompile(`\nmethods=2 tasks=1 ddiff_best_or_tied=[01] failed=0\n$`).MatchString(first) || !strings.Contains(first, "share of the time") {
		t.Errorf("output\n%s", first)
	}
	out.Reset()
	if err := runMethods(t.Context(), o); err != nil || out.String() != first {
		t.Errorf("the rerun prints another report: %v\n%s", err, out.String())
	}
}

// TestMethodsWithFailures: an image that cannot be read fails in every method. The report is complete, counts its items, and the command ends
// with an error.
func TestMethodsWithFailures(t *testing.T) {
	t.Parallel()
	images := t.TempDir()
	for _, name := range []string{"astronaut.png", "chelsea.png"} {
		data, err := os.ReadFile(filepath.Join(root, "examples", "images", name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "chelsea.png" {
			data = data[:len(data)/2]
		}
		if err := os.WriteFile(filepath.Join(images, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	o := methodsOptions{
		out: filepath.Join(t.TempDir(), "methods"), program: program, stdout: &out,
		args: []string{"--images", images, "--size", "32", "--steps", "3", "--threads", "1", "--task", "super_resolution", "--method", "ddiff,daps"},
	}
	for _, name := range []string{"equal_cost", "published", "time"} {
		o.campaigns = append(o.campaigns, filepath.Join(root, "examples", "methods", name+".yaml"))
	}
	err := runMethods(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "items failed or are dead") {
		t.Errorf("error %v", err)
	}
	if got := out.String(); !regexp.MustCompile(`\nmethods=2 tasks=1 ddiff_best_or_tied=[01] failed=[1-9][0-9]*\n$`).MatchString(got) || !strings.Contains(got, "share of the time") {
		t.Errorf("output\n%s", got)
	}
}

// A failed item takes its image out of the task, and nothing else. A method that restored nothing is out itself, ddiff excepted.
func TestMethodsRestoredByAll(t *testing.T) {
	t.Parallel()
	row := func(task, method, image, outcome string) map[string]string {
		return map[string]string{"task": task, "method": method, "image": image, "outcome": outcome}
	}
	rows := []map[string]string{
		row("hdr", "ddiff", "a", "done"), row("hdr", "ddiff", "b", "done"), row("hdr", "dps", "a", "dead"), row("hdr", "dps", "b", "done"),
		row("hdr", "daps", "a", "failed"), row("hdr", "daps", "b", "failed"),
		row("blur", "ddiff", "a", "failed"), row("blur", "dps", "a", "done"),
	}
	want := []map[string]string{rows[1], rows[3]}
	if got, failed := restoredByAll(rows); failed != 4 || !reflect.DeepEqual(got, want) {
		t.Errorf("%d failed, rows %v, want %v", failed, got, want)
	}
}

// An interruption reaches ddiff once, as a signal on which it stores checkpoints.
func TestMethodsInterrupted(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "ddiff")
	const body = "#!/bin/sh\ntrap 'echo >> \"$0\".interrupts; sleep 1; exit 130' INT\necho > \"$0\".started\nwhile :; do sleep 0.05; done\n"
	if err := os.WriteFile(script, []byte(body), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- runMethods(ctx, methodsOptions{out: t.TempDir(), program: script, stdout: io.Discard, campaigns: []string{"a.yaml", "b.yaml", "c.yaml"}})
	}()
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(script + ".started"); err == nil {
			break
		}
		if time.Since(start) > time.Minute {
			t.Fatal("the program did not start")
		}
	}
	cancel()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "run a.yaml") {
		t.Errorf("error %v, want one of the first campaign", err)
	}
	if got, err := os.ReadFile(script + ".interrupts"); err != nil || string(got) != "\n" {
		t.Errorf("interrupts %q, %v; want one", got, err)
	}
}

// A choice of methods without ddiff, to which nothing could be compared, is refused before hours of work.
func TestMethodsWithoutDDiff(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--method", "daps,dps"}, {"--size", "32", "--method=ddiff_hqs"}} {
		if err := runMethods(t.Context(), methodsOptions{program: "/nonexistent", args: args, campaigns: []string{"a.yaml"}}); err == nil || !strings.Contains(err.Error(), "without ddiff") {
			t.Errorf("%v: error %v", args, err)
		}
	}
	for _, args := range [][]string{nil, {"--method", "daps,ddiff"}, {"--limit", "1"}, {"--method"}} {
		if err := withDDiff(args); err != nil {
			t.Errorf("%v: %v", args, err)
		}
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
