package main_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/raster"
)

// python returns a Python with PyTorch and onnx.
func python(t *testing.T) string {
	t.Helper()
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "/usr/bin/python3"
	}
	if err := exec.Command(python, "-c", "import torch, onnx").Run(); err != nil {
		t.Skipf("needs PyTorch and onnx for %s (Debian: apt-get install python3-torch python3-onnx): %v", python, err)
	}
	return python
}

// exported runs the Python exporter on small networks with random weights: a prior by Tweedie's formula, a learned blur
// and a latent bundle.
func exported(t *testing.T) string {
	t.Helper()
	python := python(t)
	dir := t.TempDir()
	const script = `
import sys
from pathlib import Path
from ddiff_export import __main__ as cli, ldm, random_weights as r
out = Path(sys.argv[1])
cases = [r._drunet(out, 0)[0], r._bkse(out, 0), r._ldm(out, "imagenet256", 0)]
for case, name in zip(cases, ("prior.onnx", "blur.onnx", "latent")):
    assert cli.main([*case.arguments, "--out", str(out / name)]) == 0
assert cli.main(["half", "--onnx", str(out / "prior.onnx"), "--out", str(out / "half.onnx")]) == 0
assert cli.main([*cases[0].arguments, "--external-data", "--out", str(out / "external.onnx")]) == 0
assert cli.main([*r._drunet(out, 1)[0].arguments, "--out", str(out / "other.onnx")]) == 0
`
	cmd := exec.Command(python, "-W", "ignore", "-c", script, dir)
	cmd.Dir = filepath.Join("..", "..", "tools")
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("export: %v\n%s", err, out)
	}
	return dir
}

// agreement is the comparison with reference vectors in a check's JSON.
type agreement struct {
	MaxAbs    float64 `json:"max_abs"`
	PSNR      float64
	Precision string
	OK        bool
}

// TestCheckExported checks the files that the exporter writes, intact and damaged.
func TestCheckExported(t *testing.T) {
	t.Parallel()
	dir := exported(t)
	path := func(name string) string { return filepath.Join(dir, name) }

	for _, c := range []struct {
		verb, file, precision string
	}{{"prior", "prior.onnx", "float32"}, {"prior", "half.onnx", "float16"}, {"prior", "external.onnx", "float32"}, {"operator", "blur.onnx", "float32"}} {
		e := ddiff(t, c.verb, "check", path(c.file), "--size", "64", "--json")
		wantCode(t, e, 0)
		var r struct {
			Vectors  *agreement
			Gradient *struct{ Error float64 }
			Noise    []struct{ T int }
			MS       float64 `json:"ms_per_call"`
		}
		must(t, json.Unmarshal([]byte(e.stdout), &r))
		if r.Vectors == nil || !r.Vectors.OK || r.Vectors.Precision != c.precision || !(r.MS > 0) {
			t.Errorf("%s: %s", c.file, e.stdout)
		}
		if c.precision == "float32" && !(r.Vectors.MaxAbs <= 1e-4) || c.precision == "float16" && !(r.Vectors.PSNR >= 50) {
			t.Errorf("%s: %+v", c.file, r.Vectors)
		}
		if (r.Gradient != nil) != (c.verb == "operator") || (len(r.Noise) == 10) != (c.verb == "prior") {
			t.Errorf("%s: %s", c.file, e.stdout)
		}
	}
	e := ddiff(t, "prior", "check", path("latent"), "--size", "64", "--json")
	wantCode(t, e, 0)
	var bundle struct {
		Parts []struct {
			Role    string
			Vectors *agreement
		}
	}
	must(t, json.Unmarshal([]byte(e.stdout), &bundle))
	if len(bundle.Parts) != 4 {
		t.Errorf("parts %+v", bundle.Parts)
	}
	for _, p := range bundle.Parts {
		if p.Vectors == nil || !p.Vectors.OK {
			t.Errorf("%s: %+v", p.Role, p.Vectors)
		}
	}

	e = ddiff(t, "prior", "check", path("prior.onnx"), "--size", "64", "--images", filepath.Join("..", "..", "examples", "images"))
	wantCode(t, e, 0)
	e = ddiff(t, "operator", "check", path("blur.onnx"), "--size", "64", "--tolerance", "1e-15")
	wantCode(t, e, 3)
	wantMessage(t, e, path("blur.onnx"), "mismatch: the gradient differs from finite differences")
	e = ddiff(t, "operator", "check", path("prior.onnx"))
	wantCode(t, e, 7)
	wantMessage(t, e, path("prior.onnx"), "ddiff.kind")

	// The vectors of another prior differ, and those of an operator do not fit.
	for _, c := range []struct {
		file, vectors string
		code          int
	}{{"prior.onnx", "other.vectors", 3}, {"half.onnx", "other.vectors", 3}, {"prior.onnx", "blur.vectors", 7}} {
		file := filepath.Join(t.TempDir(), "p.onnx")
		copyFile(t, path(c.file), file)
		must(t, os.CopyFS(strings.TrimSuffix(file, ".onnx")+".vectors", os.DirFS(path(c.vectors))))
		e = ddiff(t, "prior", "check", file, "--size", "64")
		wantCode(t, e, c.code)
		if c.code == 3 {
			wantMessage(t, e, file, "mismatch with its reference vectors (float32): max_abs=")
		}
	}

	// External weights do not change a result.
	var restored [2]*raster.Image
	for i, file := range []string{"prior.onnx", "external.onnx"} {
		out := filepath.Join(t.TempDir(), "out")
		wantCode(t, restore(t, "--images", photograph("coffee"), "--task", "hdr", "--steps", "4", "--out", out, "--prior", path(file)), 0)
		found, err := filepath.Glob(filepath.Join(out, "items", "*", "restored.png"))
		must(t, err)
		if len(found) != 1 {
			t.Fatalf("%s: restored %v", file, found)
		}
		restored[i], err = raster.Decode(read(t, found[0]))
		must(t, err)
	}
	if !reflect.DeepEqual(restored[0], restored[1]) {
		t.Error("external weights change the restored image")
	}

	damage(t, path("external.onnx.data"))
	wantCode(t, ddiff(t, "run", "--images", photograph("coffee"), "--task", "hdr", "--prior", path("external.onnx")), 7)
	e = ddiff(t, "prior", "check", path("external.onnx"))
	wantCode(t, e, 7)
	wantMessage(t, e, "external.onnx.data was altered")
	must(t, os.Remove(path("external.onnx.data")))
	e = ddiff(t, "prior", "check", path("external.onnx"))
	wantCode(t, e, 7)
	wantMessage(t, e, "external.onnx.data does not exist; put it beside the model")
	damage(t, path("latent/decoder.onnx"))
	e = ddiff(t, "prior", "check", path("latent"))
	wantCode(t, e, 7)
	wantMessage(t, e, "decoder.onnx was altered")
}

// damage changes the last byte of a file.
func damage(t *testing.T, path string) {
	t.Helper()
	data := read(t, path)
	data[len(data)-1] ^= 1
	write(t, path, data)
}

func TestCheckBundledPrior(t *testing.T) {
	t.Parallel()
	e := ddiff(t, "prior", "check", prior.Bundled, "--size", "64", "--threads", "1")
	wantCode(t, e, 0)
	wantText(t, e.stdout, "mse on noise", "no reference vectors", "ms_per_call=")
}

// TestCheckMissingFiles passes missing files and empty folders.
func TestCheckMissingFiles(t *testing.T) {
	t.Parallel()
	wantRefusals(t, nil, []refusal{
		{[]string{"prior", "check", "/nonexistent.onnx"}, 7, "/nonexistent.onnx: no such file"},
		{[]string{"operator", "check", "/nonexistent.onnx"}, 7, "/nonexistent.onnx: no such file"},
		{[]string{"prior", "check", t.TempDir()}, 7, "bundle.json: no such file"},
		{[]string{"prior", "check", "bundled", "--images", "/nonexistent"}, 2, "--images: "},
		{[]string{"prior", "check", "bundled", "--images", t.TempDir()}, 2, "contains no photographs"},
		{[]string{"prior", "check"}, 2, "prior check: 0 arguments; usage: ddiff prior check FILE|DIR|bundled; see: "},
	})
}

// TestCardInvalid sets invalid entries; the file must not change. A card that contradicts the graph is found when the prior is opened.
func TestCardInvalid(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "p.onnx")
	writePrior(t, path, 3, card(3))
	before := read(t, path)
	for setting, message := range map[string]string{
		"channels=many": "must be 1, for grey images, or 3", "channels=2": "must be 1, for grey images, or 3", "prediction=noise": "must be epsilon, sample or velocity",
	} {
		e := ddiff(t, "prior", "card", path, "--set", setting)
		wantCode(t, e, 7)
		wantMessage(t, e, path, message)
	}
	if string(read(t, path)) != string(before) {
		t.Error("a rejected setting changed the file")
	}
	e := ddiff(t, "prior", "card", path, "--set", "name=other", "--out", path+".2")
	wantCode(t, e, 0)
	if _, err := os.Stat(path + ".2"); errors.Is(err, os.ErrNotExist) {
		t.Error("no file was written")
	}
	wantCode(t, ddiff(t, "prior", "card", path, "--set", "channels=1"), 0)
	e = ddiff(t, "prior", "inspect", path)
	wantCode(t, e, 7)
	wantMessage(t, e, path, "channels is 1, the graph's input x has 3")
}

// wantText checks that a text contains all parts.
func wantText(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing from\n%s", p, text)
		}
	}
}
