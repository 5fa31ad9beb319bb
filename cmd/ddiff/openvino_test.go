package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/install"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// withOpenVINO runs a restoration with an OpenVINO named by the environment, or with a cache.
func withOpenVINO(t *testing.T, env []string, args ...string) ended {
	t.Helper()
	lib, err := library()
	must(t, err)
	cmd := command(t, small(append([]string{"--images", photograph("coffee"), "--task", "hdr", "--steps", "4"}, args...)...)...)
	cmd.Env = append(append(environment(), "DDIFF_ONNXRUNTIME="+lib.Path), env...)
	return end(t, cmd)
}

// resultOf returns the only result of an output.
func resultOf(t *testing.T, out string) item.Result {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(out, "items", "*", "result.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%d results in %s, %v", len(files), out, err)
	}
	var r item.Result
	must(t, json.Unmarshal(read(t, files[0]), &r))
	return r
}

// An unusable OpenVINO ends a run with --device openvino with one line and code 4. With auto, the line is a warning, and the CPU
// provider restores.
func TestBrokenOpenVINO(t *testing.T) {
	skipLong(t)
	t.Parallel()
	dir := t.TempDir()
	text, empty := filepath.Join(dir, "text.so"), filepath.Join(dir, "empty.so")
	write(t, text, []byte("no library"))
	cache := filepath.Join(dir, "cache")
	version, err := install.PinnedVersion(install.OpenVINO)
	must(t, err)
	damaged := filepath.Join(cache, "ddiff", "onnxruntime", version+"-openvino")
	must(t, os.MkdirAll(damaged, 0o755))
	write(t, filepath.Join(damaged, "libopenvino_c.so.2641"), []byte("short"))
	cases := map[string]struct {
		env, message string
		log          bool // with auto, too
	}{
		"not installed": {"XDG_CACHE_HOME=" + filepath.Join(dir, "none"), "no OpenVINO in ", false},
		"missing file":  {install.OpenVINOVar + "=" + filepath.Join(dir, "none.so"), "no OpenVINO: stat ", true},
		"damaged":       {"XDG_CACHE_HOME=" + cache, "the installed OpenVINO is damaged: ", true},
		"no library":    {install.OpenVINOVar + "=" + text, "load " + text, true},
	}
	if out, err := exec.CommandContext(t.Context(), "cc", "-shared", "-o", empty, "-x", "c", os.DevNull).CombinedOutput(); err == nil {
		cases["another library"] = struct {
			env, message string
			log          bool
		}{install.OpenVINOVar + "=" + empty, "load " + empty, true}
	} else {
		t.Logf("no compiler: %v: %s", err, out)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			e := withOpenVINO(t, []string{c.env}, "--device", "openvino", "--out", out)
			wantCode(t, e, 4)
			wantMessage(t, e, "ddiff: use provider openvino: ", c.message)
			if lines := strings.Count(strings.TrimSpace(e.stderr), "\n"); lines != 0 {
				t.Errorf("%d lines more than one:\n%s", lines, e.stderr)
			}
			e = withOpenVINO(t, []string{c.env}, "--device", "auto", "--out", out)
			wantCode(t, e, 0)
			if strings.Contains(e.stderr, c.message) != c.log {
				t.Errorf("stderr: %s", e.stderr)
			}
			if r := resultOf(t, out); r.Runtime.Provider != onnxruntime.ProviderCPU {
				t.Errorf("provider %s", r.Runtime.Provider)
			}
		})
	}
}

// A restoration on OpenVINO records provider, precision and all settings.
func TestRunOnOpenVINO(t *testing.T) {
	env := []string{install.OpenVINOVar + "=" + onnxtest.OpenVINOLibrary(t), "XDG_CACHE_HOME=" + t.TempDir()}
	out := filepath.Join(t.TempDir(), "out")
	wantCode(t, withOpenVINO(t, env, "--device", "openvino", "--precision", "float32", "--out", out), 0)
	r := resultOf(t, out)
	if r.Runtime.Provider != onnxruntime.ProviderOpenVINO || r.Runtime.Precision != "float32" {
		t.Errorf("runtime %+v", r.Runtime)
	}
	for key, want := range map[string]string{
		"openvino.INFERENCE_PRECISION_HINT": "f32", "openvino.PERFORMANCE_HINT": "LATENCY",
	} {
		if got := r.Runtime.Options[key]; got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if r.Runtime.Options["openvino.version"] == "" {
		t.Errorf("options %v have no version of OpenVINO", r.Runtime.Options)
	}
	out = filepath.Join(t.TempDir(), "out")
	wantCode(t, withOpenVINO(t, env, "--device", "auto", "--precision", "float32", "--out", out), 0)
	if r = resultOf(t, out); r.Runtime.Provider != onnxruntime.ProviderOpenVINO {
		t.Errorf("auto: runtime %+v", r.Runtime)
	}
}

// Beside OpenVINO, a campaign with a method that needs the gradient of the network is in float32 with the precision auto, and refused
// with bfloat16 before anything runs.
func TestAutoPrecisionBesideOpenVINO(t *testing.T) {
	env := []string{install.OpenVINOVar + "=" + onnxtest.OpenVINOLibrary(t)}
	out := filepath.Join(t.TempDir(), "out")
	e := withOpenVINO(t, append(env, "XDG_CACHE_HOME="+t.TempDir()), "--precision", "auto", "--method", "dps", "--out", out)
	wantCode(t, e, 0)
	if r := resultOf(t, out); r.Item.Precision != manifest.PrecisionFloat32 || r.Runtime.Precision != "float32" {
		t.Errorf("an item in %q was computed in %q", r.Item.Precision, r.Runtime.Precision)
	}
	e = withOpenVINO(t, append(env, "XDG_CACHE_HOME="+t.TempDir()), "--precision", "bfloat16", "--method", "ddiff,dps", "--out", filepath.Join(t.TempDir(), "out"))
	wantCode(t, e, 4)
	if !strings.Contains(e.stderr, "cannot compute the network in bfloat16") { // a processor without it
		wantMessage(t, e, "ddiff: precision: method dps needs the gradient of the network, which cpu cannot do in bfloat16; leave the method out, or use float32")
	}
}

// OpenVINO is installed beside ONNX Runtime. If that fails, a note says so. The standard output has the path of ONNX Runtime alone.
func TestInstallBesideOpenVINO(t *testing.T) {
	lib, err := install.Locate(install.LocateOptions{EP: install.CPU})
	must(t, err)
	openVINO, err := install.LocateOpenVINO("")
	if err != nil || lib.Source != install.SourceCache || openVINO.Source != install.SourceCache {
		t.Skipf("the cache lacks a library: %+v, %+v, %v", lib, openVINO, err)
	}
	installed := func(beside func(releases string)) ended {
		t.Helper()
		cache := t.TempDir()
		releases := filepath.Join(cache, "ddiff", "onnxruntime")
		must(t, os.MkdirAll(releases, 0o755))
		must(t, os.Symlink(filepath.Dir(lib.Path), filepath.Join(releases, filepath.Base(filepath.Dir(lib.Path)))))
		beside(releases)
		cmd := command(t, "runtime", "install")
		cmd.Env = append(environment(), "XDG_CACHE_HOME="+cache)
		e := end(t, cmd)
		wantCode(t, e, 0)
		if !strings.HasPrefix(e.stdout, releases) || strings.Count(e.stdout, "\n") != 1 {
			t.Errorf("stdout: %s", e.stdout)
		}
		return e
	}
	name := filepath.Base(filepath.Dir(openVINO.Path))
	e := installed(func(releases string) { must(t, os.Symlink(filepath.Dir(openVINO.Path), filepath.Join(releases, name))) })
	if strings.Contains(e.stderr, "note:") || !strings.Contains(e.stderr, "OpenVINO: check\n") {
		t.Errorf("stderr: %s", e.stderr)
	}
	e = installed(func(releases string) { write(t, filepath.Join(releases, name), []byte("not a directory")) })
	if strings.Count(e.stderr, "note: ONNX Runtime computes without OpenVINO: ") != 1 || !strings.HasSuffix(e.stderr, "; to try again: ddiff runtime install --ep openvino\n") {
		t.Errorf("stderr: %s", e.stderr)
	}
}
