package install

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The release of OpenVINO has the libraries that the CPU needs, and none for other devices.
func TestOpenVINORelease(t *testing.T) {
	t.Parallel()
	r, err := releaseFor(OpenVINO, "linux", "amd64")
	must(t, err)
	names := map[string]bool{}
	for _, m := range r.Sources[0].Files {
		if names[m.Name] || m.Size <= 0 || len(m.SHA256) != 64 {
			t.Errorf("member %+v", m)
		}
		names[m.Name] = true
		for _, device := range []string{"gpu", "npu"} {
			if strings.Contains(m.Name, device) {
				t.Errorf("%s is for another device", m.Name)
			}
		}
	}
	for _, name := range []string{"libopenvino_intel_cpu_plugin.so", "libopenvino_onnx_frontend.so.2641", "libtbb.so.12", "LICENSE"} {
		if !names[name] {
			t.Errorf("no %s", name)
		}
	}
	if r.Sources[0].Files[0].Name != "libopenvino_c.so.2641" {
		t.Errorf("the library to load is %s", r.Sources[0].Files[0].Name)
	}
	for _, platform := range [][2]string{{"linux", "arm64"}, {"darwin", "arm64"}} {
		if _, err := releaseFor(OpenVINO, platform[0], platform[1]); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "on x86-64, build it and set "+OpenVINOVar) {
			t.Errorf("%v: %v", platform, err)
		}
	}
}

// OpenVINO is found only complete; each error is one line with the remedy.
func TestLocateOpenVINO(t *testing.T) {
	t.Parallel()
	archived := tarball(t, entry{name: "a/libopenvino_c.so", content: "library"}, entry{name: "a/libother.so", content: "other"})
	r := pin(archived, tarGzip, "a/libopenvino_c.so", "library", "a/libother.so", "other")
	r.EP = OpenVINO
	cache, from := t.TempDir(), filepath.Join(t.TempDir(), "openvino.whl")
	own := filepath.Join(t.TempDir(), "lib", "ddiff")
	places := pinnedPlaces(LocateOptions{CacheDir: cache, OwnDir: own})
	write(t, from, archived)
	remedy := func(err error) {
		t.Helper()
		if !strings.HasSuffix(err.Error(), "; run: ddiff runtime install --ep openvino") || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v", err)
		}
	}
	_, err := r.openVINO(places)
	if !errors.Is(err, ErrNoOpenVINO) {
		t.Fatalf("nothing is installed: %v", err)
	}
	remedy(err)
	install := func() {
		t.Helper()
		lib, err := r.install(t.Context(), Options{From: from, CacheDir: cache})
		if err != nil || lib.EP != OpenVINO || filepath.Base(lib.Path) != "libopenvino_c.so" {
			t.Fatalf("install: %+v, %v", lib, err)
		}
		if lib, err = r.openVINO(places); err != nil || lib.Source != SourceCache || lib.Version != r.Version {
			t.Fatalf("locate: %+v, %v", lib, err)
		}
	}
	install()
	for name, damage := range map[string]func(path string) error{
		"missing": os.Remove,
		"short":   func(path string) error { return os.Truncate(path, 1) },
	} {
		must(t, damage(filepath.Join(r.directory(cache), "libother.so")))
		_, err := r.openVINO(places)
		if !errors.Is(err, ErrChecksum) {
			t.Fatalf("%s: %v", name, err)
		}
		remedy(err)
		install() // replaces the damaged one
	}
	// A library that came with the program is used without the installed one.
	must(t, os.Rename(r.directory(cache), filepath.Join(t.TempDir(), "moved")))
	write(t, filepath.Join(own, OpenVINO, "libopenvino_c.so"), []byte("library"))
	write(t, filepath.Join(own, OpenVINO, "libother.so"), []byte("other"))
	if lib, err := r.openVINO(places); err != nil || lib.Source != SourceProgram || lib.Path != filepath.Join(own, OpenVINO, "libopenvino_c.so") {
		t.Errorf("%+v, %v", lib, err)
	}
	write(t, filepath.Join(own, OpenVINO, "libother.so"), []byte("longer"))
	if _, err := r.openVINO(places); !errors.Is(err, ErrChecksum) {
		t.Errorf("changed: %v", err)
	}
}

// The variable names another library.
func TestOpenVINOVariable(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "own.so")
	write(t, path, []byte("own"))
	t.Setenv(OpenVINOVar, path)
	if lib, err := LocateOpenVINO(""); err != nil || lib.Path != path || lib.Source != OpenVINOVar {
		t.Errorf("%+v, %v", lib, err)
	}
	for _, bad := range []string{dir, filepath.Join(dir, "none.so")} {
		t.Setenv(OpenVINOVar, bad)
		if _, err := LocateOpenVINO(""); !errors.Is(err, ErrNoOpenVINO) || !strings.Contains(err.Error(), OpenVINOVar+": ") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
