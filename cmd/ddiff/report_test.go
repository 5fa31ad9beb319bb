package main_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"ddiff/restore/item"
)

// TestReportOfTwoCampaigns runs two campaigns into one output, the second with a damaged image, and reports on both.
func TestReportOfTwoCampaigns(t *testing.T) {
	t.Parallel()
	dir := photographs(t, "coffee", "rocket")
	out := tiny(t, "--images", dir, "--task", "hdr", "--steps", "4", "--size", "64")
	must(t, os.WriteFile(filepath.Join(dir, "broken.png"), []byte("no image"), 0o644))
	second := restore(t, "--images", dir, "--task", "gaussian_deblur", "--steps", "4", "--size", "32", "--param", "std=1", "--out", out)
	wantCode(t, second, 3)
	wantCounts(t, second, 2, 1, 0, out)

	e := ddiff(t, "report", out, "--format", "csv")
	wantCode(t, e, 0)
	lines := strings.Split(strings.TrimSpace(e.stdout), "\n")
	if len(lines) != 1+5 || !strings.HasPrefix(lines[0], "item,image,task,params,sigma,photons,size,prior,preset,method,settings,precision,run,seed,outcome,reason,psnr,baseline_psnr,gain,ssim,") {
		t.Fatalf("%d lines:\n%s", len(lines), e.stdout)
	}
	for text, n := range map[string]int{",hdr,": 2, ",size=61;std=1,0.05,,32x32,": 2, ",natural,ddiff,steps=4;": 4, ",failed,": 1, "not a PNG": 1} {
		if got := strings.Count(e.stdout, text); got != n {
			t.Errorf("%q is in %d lines, want %d\n%s", text, got, n, e.stdout)
		}
	}

	wantLine(t, ddiff(t, "report", out, "--where", "task=hdr"), "hdr   ddiff †       2  ")
	for format, want := range map[string]string{"md": "| gaussian\\_deblur | 32x32 center\\_crop | ddiff † | 2 |", "latex": "\\toprule"} {
		file := filepath.Join(t.TempDir(), "table")
		e := ddiff(t, "report", out, "--format", format, "--out", file)
		wantCode(t, e, 0)
		if text := string(read(t, file)); !strings.Contains(text, want) || e.stdout != "" {
			t.Errorf("%s lacks %q:\n%s\n%v", format, want, text, e)
		}
	}
	file := filepath.Join(t.TempDir(), "rows.parquet")
	wantCode(t, ddiff(t, "report", out, "--format", "parquet", "--out", file), 0)
	data := read(t, file)
	table, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	must(t, err)
	if table.NumRows() != 5 {
		t.Errorf("%s has %d rows, want 5", file, table.NumRows())
	}

	page := filepath.Join(t.TempDir(), "page")
	e = ddiff(t, "report", out, "--format", "html", "--out", page)
	wantCode(t, e, 0)
	wantLine(t, e, "items=5 done=4 failed=1 dead=0 report="+filepath.Join(page, "index.html"))
	if pictures, _ := filepath.Glob(filepath.Join(page, "items", "*", "restored.png")); len(pictures) != 4 {
		t.Errorf("the page has %d restored pictures, want 4", len(pictures))
	}

	figures := filepath.Join(t.TempDir(), "figures")
	e = ddiff(t, "report", out, "--where", "task=hdr", "--format", "figures", "--out", figures)
	wantCode(t, e, 0)
	wantLine(t, e, "figures=2 captions="+filepath.Join(figures, "captions.md"))
	for _, name := range []string{"convergence_hdr", "residual_vs_psnr_hdr"} {
		for _, extension := range []string{".svg", ".csv"} {
			read(t, filepath.Join(figures, name+extension))
		}
	}

	// The damaged image is mended: the next report of its campaign no longer lists it.
	copyFile(t, photograph("chelsea"), filepath.Join(dir, "broken.png"))
	again := restore(t, "--images", dir, "--task", "gaussian_deblur", "--steps", "4", "--size", "32", "--param", "std=1", "--out", out)
	wantCode(t, again, 0)
	e = ddiff(t, "report", out, "--format", "csv")
	if strings.Contains(e.stdout, ",failed,") || strings.Count(e.stdout, ",done,") != 5 {
		t.Errorf("after the repair:\n%s", e.stdout)
	}
}

func TestReportRefuses(t *testing.T) {
	t.Parallel()
	out := tiny(t, "--images", photograph("coffee"), "--task", "hdr", "--steps", "4")
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(out, link))
	other := t.TempDir()
	must(t, os.CopyFS(other, os.DirFS(out)))
	wantRefusals(t, nil, []refusal{
		{[]string{"report", out, "--format", "word"}, 2, `--format "word" is none of html, text, csv, parquet, md, latex`},
		{[]string{"report", out, "--format", "parquet"}, 2, "give --out FILE"},
		{[]string{"report", out, "--where", "task"}, 2, "want NAME=VALUE"},
		{[]string{"report", out, "--where", "gama0=3"}, 2, "gama0: no result has this property"},
		{[]string{"report", out, "--where", "task=motion_deblur"}, 2, "no result matches"},
		{[]string{"report", out, "--select", "best"}, 2, `select "best": unknown selection rule`},
		{[]string{"report", out, "--select", "mean", "--format", "csv"}, 2, "--format csv has a row for each run; leave --select out"},
		{[]string{"report", out, "--select", "mean", "--format", "parquet", "--out", filepath.Join(t.TempDir(), "rows")}, 2, "leave --select out"},
		{[]string{"report", out, "--published", "x.csv", "--format", "figures"}, 2, "--format figures has the results alone"},
		{[]string{"report", filepath.Join(out, "missing")}, 2, "no such directory"},
		{[]string{"report", t.TempDir()}, 2, "no result matches"},
		{[]string{"report", out, "--format", "csv", "--out", filepath.Join(out, "missing", "x.csv")}, 6, "write report"},
		{[]string{"report", out, "--format", "html", "--out", "s3://bucket/x"}, 2, "is an address"},
		{[]string{"report", t.TempDir(), out, "--format", "html", "--out", out + "/"}, 2, "has results and a report of its own"},
		{[]string{"report", t.TempDir(), out, "--format", "html", "--out", link}, 2, "has results and a report of its own"},
		{[]string{"report", other, "--format", "html", "--out", out}, 2, "has results and a report of its own"},
		{[]string{"report", t.TempDir(), "file://" + out, "--format", "html", "--out", out}, 2, "has results and a report of its own"},
		{[]string{"report", out, "--format", "figures", "--out", "s3://bucket/x"}, 2, "is an address"},
		{[]string{"compare", out, out, "--select", "best_psnr"}, 2, "would rank an oracle"},
		{[]string{"compare", out, out, "--where-a", "task=hdr", "--where-b", "seed=1"}, 2, "no result matches"},
		{[]string{"compare", out}, 2, "usage: ddiff compare A B"},
	})
}

func TestCompareOutputs(t *testing.T) {
	t.Parallel()
	dir := photographs(t, "coffee", "rocket")
	a := tiny(t, "--images", dir, "--task", "hdr,super_resolution", "--steps", "4")
	b := tiny(t, "--images", dir, "--task", "hdr,super_resolution", "--steps", "8")
	to := filepath.Join(t.TempDir(), "difference")
	e := ddiff(t, "compare", a, b, "--out", to)
	wantCode(t, e, 0)
	wantLine(t, e, "hdr scale=2 σ=0.05 ")
	for _, name := range []string{"comparison.json", "differences.png"} {
		if info, err := os.Stat(filepath.Join(to, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := tiny(t, "--images", dir, "--task", "hdr", "--steps", "4", "--seed", "9")
	e = ddiff(t, "compare", a, other)
	wantCode(t, e, 2)
	wantMessage(t, e, "different measurements: 2 of A, 2 of B, 0 in common; are images, seed")
	twice := tiny(t, "--images", dir, "--task", "hdr", "--steps", "4", "--runs", "2")
	e = ddiff(t, "compare", a, twice, "--where", "task=hdr", "--select", "mean")
	wantCode(t, e, 0)
	wantLine(t, e, "note: unequal runs: 1 in A, 2 in B (measurements: 2)")
}

// TestDamagedResult: a report over an output with a damaged result names the file and ends with the code of a mismatch.
func TestDamagedResult(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	path := filepath.Join(out, "items", strings.Repeat("ab", 32), "result.json")
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	for _, content := range []string{"{", `{"schema":1}`} {
		write(t, path, []byte(content))
		e := ddiff(t, "report", out)
		wantCode(t, e, 3)
		wantMessage(t, e, "items/"+strings.Repeat("ab", 32)+"/result.json", "move the item's folder away and run its campaign again")
	}
}

// TestReportRefused: a report without results creates no folder, and leaves nothing in an existing one.
func TestReportRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	existing := filepath.Join(dir, "existing")
	must(t, os.Mkdir(existing, 0o755))
	must(t, os.Mkdir(filepath.Join(dir, "empty"), 0o755))
	for _, format := range []string{"html", "figures"} {
		for _, out := range []string{existing, filepath.Join(dir, "new")} {
			e := ddiff(t, "report", filepath.Join(dir, "empty"), "--format", format, "--out", out)
			wantCode(t, e, 2)
			wantMessage(t, e, "no result matches")
		}
	}
	entries, err := os.ReadDir(existing)
	if _, statErr := os.Stat(filepath.Join(dir, "new")); err != nil || len(entries) > 0 || statErr == nil {
		t.Errorf("left: %v, %v, %v", entries, err, statErr)
	}
}

// TestExportFolders exports a sweep: a folder per cell, with the bytes of the items.
func TestExportFolders(t *testing.T) {
	t.Parallel()
	out := tiny(t, "--images", photographs(t, "coffee", "rocket"), "--task", "hdr", "--set", "gamma0=4,8", "--steps", "3")
	to := filepath.Join(t.TempDir(), strings.Repeat("i", 255)) // the longest name
	e := ddiff(t, "export", out, "--out", to)
	wantCode(t, e, 0)
	wantLine(t, e, "images=4 cells=2 dir="+to)
	for _, r := range wantItems(t, out, 4) {
		cell := "hdr.gamma0=4"
		if strings.Contains(strings.ReplaceAll(string(r.Item.Solver), " ", ""), `"gamma0":8`) {
			cell = "hdr.gamma0=8"
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
		must(t, do(file(out, id, item.FileRestored)))
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
