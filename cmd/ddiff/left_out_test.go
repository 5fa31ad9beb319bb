package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReportNamesLeftOut: the page names each input that was left out with its reason, also the page that is made later, of two campaigns or of a copy.
func TestReportNamesLeftOut(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	copyFile(t, photograph("coffee"), filepath.Join(dir, "a.png"))
	for _, name := range []string{"notes.txt", "<b>.md"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("text"), 0o644))
	}
	must(t, os.Mkdir(filepath.Join(dir, "below"), 0o755))
	run := []string{"run", dir, "--steps", "2", "--size", "32", "--out", out, "-q", "--task"}
	wantCode(t, ddiff(t, append(run, "denoise")...), 0)
	wantCode(t, ddiff(t, append(run, "hdr")...), 0)
	copied, page := filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "page")
	wantCode(t, ddiff(t, "pull", out, copied), 0)
	wantCode(t, ddiff(t, "report", copied, "--format", "html", "--out", page), 0)
	for _, file := range []string{filepath.Join(out, "index.html"), filepath.Join(page, "index.html")} {
		text := string(read(t, file))
		for _, want := range []string{"3 inputs, by reason", "2: not an image: <bdi>&lt;b&gt;.md, notes.txt</bdi>", "1: a folder; dataset.recursive: true reads the folders below: <bdi>below</bdi>"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q", file, want)
			}
		}
	}
	must(t, os.Remove(filepath.Join(dir, "notes.txt")))
	wantCode(t, ddiff(t, append(run, "hdr")...), 0)
	if text := string(read(t, filepath.Join(out, "index.html"))); strings.Contains(text, "notes.txt") || !strings.Contains(text, "&lt;b&gt;.md") {
		t.Error("the page does not have what the last run left out")
	}
}
