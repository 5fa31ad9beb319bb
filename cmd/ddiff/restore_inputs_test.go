package main_test

import (
	"os"
	"path/filepath"
	"testing"
)

// quick are arguments of restore that compute little.
func quick(args ...string) []string {
	return append([]string{"restore", "--task", "super_resolution", "--param", "factor=2", "--steps", "2", "--threads", "1"}, args...)
}

// TestRestoreKeepsInputs: an input is never replaced, not even with --force.
func TestRestoreKeepsInputs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.png"), filepath.Join(dir, "a.restored.png")
	write(t, a, grey(16))
	write(t, b, grey(24))
	link := filepath.Join(dir, "link.png") // another name of the same file
	must(t, os.Link(b, link))
	for _, args := range [][]string{{a, b}, {b, a}, {a, b, "--force"}, {a, link, "--force"}} {
		e := ddiff(t, quick(args...)...)
		wantCode(t, e, 2)
		wantMessage(t, e, "is an input, and would be the restored picture of "+a, "give --out DIR")
		if string(read(t, b)) != string(grey(24)) {
			t.Fatalf("%v replaced an input", args)
		}
	}
	wantCode(t, ddiff(t, quick(a, b, "--set", "sigma=0.3,0.2", "--out", filepath.Join(dir, "new"))...), 0) // other names
	c := filepath.Join(dir, "a.sigma=0.1.restored.png")
	write(t, c, grey(24))
	e := ddiff(t, quick(a, c, "--set", "sigma=0.1,0.2", "--force")...)
	wantCode(t, e, 3)
	wantMessage(t, e, "failed: ", c+" is an input")
	if string(read(t, c)) != string(grey(24)) {
		t.Error("a restoration of several replaced an input")
	}
}

// TestRestoreOtherSettings: a picture that was restored with other settings is not "restored already".
func TestRestoreOtherSettings(t *testing.T) {
	t.Parallel()
	a := filepath.Join(t.TempDir(), "a.png")
	write(t, a, grey(16))
	wantCode(t, ddiff(t, quick(a, "--sigma", "0.02")...), 0)
	e := ddiff(t, quick(a, "--sigma", "0.02")...)
	wantCode(t, e, 0)
	wantLine(t, e, "done=0 failed=0 dead=0 skipped=1")
	for _, c := range []struct{ args, message []string }{
		{[]string{"--sigma", "0.1"}, []string{"σ 0.02", "instead of", "σ 0.1"}},
		{[]string{"--sigma", "0.02", "--steps", "3"}, []string{"2", "instead of", "3"}},
		{[]string{"--sigma", "0.02", "--seed", "7"}, []string{"other settings"}},
	} {
		e := ddiff(t, quick(append(c.args, a)...)...)
		wantCode(t, e, 3)
		wantMessage(t, e, append(c.message, "failed: ", "give --force")...)
	}
	e = ddiff(t, quick(a, "--sigma", "0.1", "--force", "--precision", "auto")...)
	wantCode(t, e, 0)
	wantLine(t, e, "done=1")
	// As `restore *.png` after an interruption.
	e = ddiff(t, quick(a, filepath.Join(filepath.Dir(a), "a.restored.png"), "--sigma", "0.1", "--precision", "auto")...)
	wantCode(t, e, 0)
	wantLine(t, e, "done=0 failed=0 dead=0 skipped=2")
}

// TestRestoreNamesRefusedFiles: a file in a format that is not read has a line of its own, and counts as failed.
func TestRestoreNamesRefusedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, gif := filepath.Join(dir, "a.png"), filepath.Join(dir, "b.gif")
	write(t, a, grey(16))
	write(t, gif, []byte("GIF89a"))
	e := ddiff(t, quick(gif, a)...)
	wantCode(t, e, 3)
	wantMessage(t, e, "failed: ", gif, "neither a picture nor a .npy file")
	wantLine(t, e, "done=1 failed=1")
}
