package main_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/manifest"
)

// TestExportFolders exports a sweep: a folder per cell, with the bytes of the items.
func TestExportFolders(t *testing.T) {
	t.Parallel()
	out := tiny(t, "--images", photographs(t, "coffee", "rocket"), "--task", "hdr", "--set", "gamma0=4,8", "--steps", "3")
	to := filepath.Join(t.TempDir(), "images")
	e := ddiff(t, "export", out, "--out", to)
	wantCode(t, e, 0)
	wantLine(t, e, "images=4 cells=2 dir="+to)
	for _, r := range wantItems(t, out, 4) {
		cell := "hdr.gamma0=4.ddiff"
		if strings.Contains(strings.ReplaceAll(string(r.Item.Solver), " ", ""), `"gamma0":8`) {
			cell = "hdr.gamma0=8.ddiff"
		}
		for _, kind := range []string{"restored", "truth", "measurement"} {
			got := read(t, filepath.Join(to, cell, kind, r.Item.Name+".png"))
			if !bytes.Equal(got, read(t, file(out, r.Item.ID, kind+".png"))) {
				t.Errorf("%s of %s differs from the item's", kind, r.Item.Name)
			}
		}
	}
	wantCode(t, ddiff(t, "export", out, "--out", to), 2)

	// A damaged or missing picture ends the export, which leaves nothing behind.
	damage := func(id string, do func(path string) error) {
		t.Helper()
		must(t, do(file(out, id, manifest.FileRestored)))
		dir := t.TempDir()
		e = ddiff(t, "export", out, "--out", filepath.Join(dir, "second"))
		wantCode(t, e, 3)
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
			t.Errorf("left %v, error %v", entries, err)
		}
	}
	for id := range wantItems(t, out, 4) {
		damage(id, func(path string) error { return os.WriteFile(path, nil, 0o644) })
		damage(id, os.Remove)
		break
	}
}

func TestExportRefuses(t *testing.T) {
	t.Parallel()
	out := tiny(t, "--images", photograph("coffee"), "--task", "hdr", "--steps", "3")
	wantRefusals(t, []string{"export", out}, []refusal{
		{[]string{"--out", "s3://bucket/x"}, 2, "is an address"},
		{[]string{"--out", out}, 2, "is not empty"},
		{[]string{"--out", filepath.Join(out, "summary.json")}, 2, "not a directory"},
		{[]string{"--out", filepath.Join(out, "none", "x")}, 6, "write report"},
		{[]string{"--out", filepath.Join(t.TempDir(), "x"), "--where", "task=inpaint_box"}, 2, "no result matches"},
	})
}
