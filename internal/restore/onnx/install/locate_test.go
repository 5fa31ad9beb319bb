package install

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// fakeRelease creates sparse files with the pinned names and sizes; Locate checks nothing else in the cache.
func fakeRelease(t *testing.T, cache, ep string) string {
	t.Helper()
	r, err := releaseFor(ep, runtime.GOOS, runtime.GOARCH)
	if err != nil {
		t.Skipf("no release for this platform: %v", err)
	}
	for _, m := range r.Sources[0].Files {
		path := filepath.Join(r.directory(cache), m.Name)
		write(t, path, nil)
		must(t, os.Truncate(path, m.Size))
	}
	return r.library(r.Sources[0], r.directory(cache), "").Path
}

func TestLocatePrecedence(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the test's libraries are for Linux")
	}
	root := t.TempDir()
	path := func(parts ...string) string { return filepath.Join(append([]string{root}, parts...)...) }
	good := path("flag", "libonnxruntime.so")
	compile(t, good, "1.30.0")
	library := read(t, good)
	for _, copied := range []string{
		path("env", "libonnxruntime.so.1"), path("gpu", "libonnxruntime.so"), path("gpu", "libonnxruntime_providers_cuda.so"),
	} {
		write(t, copied, library)
	}
	compile(t, path("old", "libonnxruntime.so.1.21.0"), "1.21.0")
	compile(t, path("unversioned", "libonnxruntime.so"), "")
	foreign := slices.Clone(library)
	foreign[18], foreign[19] = 0xf3, 0 // e_machine: RISC-V
	write(t, path("foreign", "libonnxruntime.so"), foreign)
	write(t, path("text", "libonnxruntime.so"), []byte("INPUT(-lonnxruntime)"))
	cpu := fakeRelease(t, path("cache-cpu"), CPU)
	gpu := fakeRelease(t, path("cache-gpu"), CUDA)
	both := fakeRelease(t, path("cache-both"), CPU)
	fakeRelease(t, path("cache-both"), CUDA)
	must(t, os.Truncate(fakeRelease(t, path("cache-torn"), CPU), 1000))

	tests := map[string]struct {
		flag, env, cache, ep string
		want                 Library
		wantErr              error
		text                 []string // in the error
	}{
		"flag wins":                {flag: good, env: path("env"), cache: "cache-cpu", want: Library{good, CPU, "--onnxruntime", "1.30.0"}},
		"environment before cache": {env: path("env", "libonnxruntime.so.1"), cache: "cache-cpu", want: Library{path("env", "libonnxruntime.so.1"), CPU, EnvVar, "1.30.0"}},
		"unknown version":          {env: path("unversioned", "libonnxruntime.so"), want: Library{path("unversioned", "libonnxruntime.so"), CPU, EnvVar, ""}},
		"cache":                    {cache: "cache-cpu", want: Library{cpu, CPU, SourceCache, "1.30.0"}},
		"cuda from flag":           {ep: CUDA, flag: path("gpu", "libonnxruntime.so"), want: Library{path("gpu", "libonnxruntime.so"), CUDA, "--onnxruntime", "1.30.0"}},

		"cuda from cache":            {ep: CUDA, cache: "cache-both", want: Library{filepath.Join(path("cache-both"), "1.29.0-cuda", "libonnxruntime.so"), CUDA, SourceCache, "1.29.0"}},
		"any takes what can load":    {cache: "cache-both", want: Library{both, CPU, SourceCache, "1.30.0"}},
		"cpu from a cuda build":      {ep: CPU, cache: "cache-gpu", want: Library{gpu, CUDA, SourceCache, "1.29.0"}},
		"any from a cuda build":      {cache: "cache-gpu", want: Library{gpu, CUDA, SourceCache, "1.29.0"}},
		"cuda is not in a cpu cache": {ep: CUDA, cache: "cache-cpu", wantErr: ErrNotFound, text: []string{"1.29.0-cuda", "run: ddiff runtime install --ep cuda"}},

		"missing flag":        {flag: path("nowhere.so"), env: path("env"), cache: "cache-cpu", wantErr: fs.ErrNotExist, text: []string{"--onnxruntime", "nowhere.so"}},
		"missing environment": {env: path("nowhere"), cache: "cache-cpu", wantErr: fs.ErrNotExist, text: []string{EnvVar, "nowhere"}},
		"flag is a directory": {flag: path("flag"), cache: "cache-cpu", wantErr: ErrUnsupported, text: []string{"--onnxruntime", path("flag"), "not a file"}},
		"old flag":            {flag: path("old", "libonnxruntime.so.1.21.0"), cache: "cache-cpu", wantErr: ErrUnsupported, text: []string{"1.21.0", "at least 1.29"}},
		"foreign environment": {env: path("foreign", "libonnxruntime.so"), cache: "cache-cpu", wantErr: ErrUnsupported, text: []string{EnvVar, "RISCV"}},
		"text flag":           {flag: path("text", "libonnxruntime.so"), wantErr: ErrUnsupported, text: []string{"not a shared library"}},
		"flag without cuda":   {flag: good, ep: CUDA, wantErr: ErrUnsupported, text: []string{"libonnxruntime_providers_cuda.so"}},
		"unknown provider":    {ep: "tpu", text: []string{`"tpu"`, CPU, CUDA}},
		"nothing": {cache: "cache-torn", wantErr: ErrNotFound, text: []string{
			"--onnxruntime", EnvVar, "1.30.0-cpu (verify", "has 1000 bytes", path("no-own"), "run: ddiff runtime install"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := LocateOptions{Path: test.flag, EP: test.ep, CacheDir: path("no-cache"), OwnDir: path("no-own"),
				Environ: func(name string) string { return map[string]string{EnvVar: test.env}[name] }}
			if test.cache != "" {
				opts.CacheDir = path(test.cache)
			}
			lib, err := Locate(opts)
			if len(test.text) == 0 {
				if err != nil || lib != test.want {
					t.Fatalf("got %+v, %v\nwant %+v", lib, err, test.want)
				}
				return
			}
			if err == nil || test.wantErr != nil && !errors.Is(err, test.wantErr) {
				t.Fatalf("got %+v, %v; want %v", lib, err, test.wantErr)
			}
			for _, part := range test.text {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error does not contain %q: %v", part, err)
				}
			}
		})
	}
}

// A release that was unpacked with the program is found after the cache, if its files have
// the pinned sizes.
// TestAttackLibrary: a library that another user may change or replace is not loaded, and the error names the path.
func TestAttackLibrary(t *testing.T) {
	t.Parallel()
	mode := func(path string, mode os.FileMode) func(t *testing.T) {
		return func(t *testing.T) { t.Helper(); must(t, os.Chmod(path, mode)) }
	}
	for name, attack := range map[string]func(library, cache string) (path string, change func(t *testing.T)){
		"file of all":     func(library, _ string) (string, func(t *testing.T)) { return library, mode(library, 0o666) },
		"file of a group": func(library, _ string) (string, func(t *testing.T)) { return library, mode(library, 0o664) },
		"folder of all": func(library, _ string) (string, func(t *testing.T)) {
			return filepath.Dir(library), mode(filepath.Dir(library), 0o777)
		},
		"cache of a group": func(_, cache string) (string, func(t *testing.T)) { return cache, mode(cache, 0o775) },
		"folder above for all": func(_, cache string) (string, func(t *testing.T)) {
			return filepath.Dir(cache), mode(filepath.Dir(cache), 0o777)
		},
		"file of another": func(library, _ string) (string, func(t *testing.T)) {
			return library, func(t *testing.T) {
				t.Helper()
				if os.Geteuid() != 0 {
					t.Skip("needs root to give a file to another user")
				}
				must(t, os.Chown(library, 12345, 12345))
			}
		},
	} {
		for _, ep := range []string{CPU, OpenVINO} {
			t.Run(name+" "+ep, func(t *testing.T) {
				cache := filepath.Join(t.TempDir(), "user", "cache")
				library := fakeRelease(t, cache, ep)
				locate := func() (Library, error) {
					if ep == OpenVINO {
						return LocateOpenVINO(cache)
					}
					return Locate(LocateOptions{EP: ep, CacheDir: cache, OwnDir: t.TempDir(), Environ: func(string) string { return "" }})
				}
				if lib, err := locate(); err != nil || lib.Path != library {
					t.Fatalf("without an attack: %+v, %v", lib, err)
				}
				path, change := attack(library, cache)
				change(t)
				if lib, err := locate(); err == nil || !strings.Contains(err.Error(), "another user may change the library") || !strings.Contains(err.Error(), path) {
					t.Errorf("%+v, %v, want an error with %s", lib, err, path)
				}
			})
		}
	}
}

func TestLocateOwnDirectory(t *testing.T) {
	t.Parallel()
	installed, err := Locate(LocateOptions{EP: CPU, Environ: func(string) string { return "" }})
	if err != nil || installed.Source != SourceCache {
		t.Skip("no ONNX Runtime is installed in the user's cache")
	}
	root := t.TempDir()
	own := filepath.Join(root, "lib", "ddiff")
	must(t, os.CopyFS(own, os.DirFS(filepath.Dir(installed.Path))))
	opts := LocateOptions{CacheDir: filepath.Join(root, "none"), OwnDir: own, Environ: func(string) string { return "" }}
	path := filepath.Join(own, filepath.Base(installed.Path))
	lib, err := Locate(opts)
	if err != nil || lib.Path != path || lib.Source != SourceProgram || lib.Version != cpuVersion {
		t.Errorf("%+v, %v", lib, err)
	}
	withCache := opts
	withCache.CacheDir = ""
	if lib, err := Locate(withCache); err != nil || lib != installed {
		t.Errorf("with a cache: %+v, %v; want %+v", lib, err, installed)
	}

	must(t, os.Truncate(path, 1000))
	if _, err := Locate(opts); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), own+" (verify ") {
		t.Errorf("cut short: %v", err)
	}
}

// Verify reads the files: a changed byte is found.
func TestVerify(t *testing.T) {
	t.Parallel()
	installed, err := Locate(LocateOptions{EP: CPU, Environ: func(string) string { return "" }})
	if err != nil || installed.Source != SourceCache {
		t.Skip("no ONNX Runtime is installed in the user's cache")
	}
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS(filepath.Dir(installed.Path))))
	path := filepath.Join(dir, filepath.Base(installed.Path))
	build, err := Verify(dir, CPU, runtime.GOOS, runtime.GOARCH)
	if err != nil || build.Version != cpuVersion || build.Files[0].Name != filepath.Base(path) || build.Archive == "" {
		t.Errorf("%+v, %v", build, err)
	}
	content := read(t, path)
	content[len(content)/2] ^= 0xff
	write(t, path, content)
	if _, err := Verify(dir, CPU, runtime.GOOS, runtime.GOARCH); !errors.Is(err, ErrChecksum) {
		t.Errorf("changed: %v", err)
	}
}

// The program's own directory belongs to the program, not to a link to it.
func TestOwnDirectory(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	must(t, err)
	program, err = filepath.EvalSymlinks(program)
	must(t, err)
	dir, err := ownDirectory("")
	if want := filepath.Join(filepath.Dir(filepath.Dir(program)), "lib", "ddiff"); err != nil || dir != want {
		t.Errorf("%s, %v; want %s", dir, err, want)
	}
}

func TestLocateUsesEnvironment(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(EnvVar, filepath.Join(dir, "gone"))
	if _, err := Locate(LocateOptions{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), EnvVar) {
		t.Errorf("error %v does not name %s", err, EnvVar)
	}
}

func TestTooOld(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"": false, "1.28.3": true, "1.29.0": false, "1.30.0": false, "1.100.0": false, "2.0.0": false, "0.5.0": true, "dev": false,
	} {
		if got := tooOld(version); got != want {
			t.Errorf("tooOld(%q) = %v, want %v", version, got, want)
		}
	}
}
