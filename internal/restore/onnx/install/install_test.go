package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// entry is an entry of a test archive.
type entry struct {
	name    string
	content string
	link    string // makes it a symbolic link
}

func tarball(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var buffer bytes.Buffer
	zipper := gzip.NewWriter(&buffer)
	writer := tar.NewWriter(zipper)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: 0o644, Size: int64(len(e.content)), Typeflag: tar.TypeReg}
		if e.link != "" {
			header.Typeflag, header.Linkname = tar.TypeSymlink, e.link
		}
		must(t, writer.WriteHeader(header))
		if _, err := writer.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	must(t, errors.Join(writer.Close(), zipper.Close()))
	return buffer.Bytes()
}

const libraryText = "pretend that these are forty megabytes of machine code"

// smallRelease returns a release with two short members, and its archive.
func smallRelease(t testing.TB) (release, []byte) {
	t.Helper()
	archived := tarball(t,
		entry{name: "package/other.js", content: "not wanted"},
		entry{name: "package/lib/libonnxruntime.so.1", content: libraryText},
		entry{name: "package/LICENSE", content: "MIT"})
	return pin(archived, tarGzip, "package/lib/libonnxruntime.so.1", libraryText, "package/LICENSE", "MIT"), archived
}

// The suffixes of the names of archives.
const (
	tarGzip = ".tgz"
	zipped  = ".whl"
)

// pin returns a release of an archive with a name that ends in suffix; members alternate between path and content.
func pin(archived []byte, suffix string, members ...string) release {
	sum := sha512.Sum512(archived)
	s := source{Client: ClientNPM, Package: "small@9.9.9", Archive: archive{
		Name: "small" + suffix, Size: int64(len(archived)), Digest: "sha512:" + base64.StdEncoding.EncodeToString(sum[:]),
	}}
	for i := 0; i < len(members); i += 2 {
		sum := sha256.Sum256([]byte(members[i+1]))
		s.Files = append(s.Files, File{Path: members[i], Name: filepath.Base(members[i]),
			Size: int64(len(members[i+1])), SHA256: hex.EncodeToString(sum[:])})
	}
	return release{Version: "9.9.9", EP: CPU, Sources: []source{s}}
}

// wantOnly checks that the cache contains the lock and these entries only, no work directories.
func wantOnly(t *testing.T, cache string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(cache)
	must(t, err)
	var got []string
	for _, e := range entries {
		if e.Name() != ".lock" {
			got = append(got, e.Name())
		}
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("the cache contains %q, want %q", got, names)
	}
}

func TestInstallFromFile(t *testing.T) {
	t.Parallel()
	r, archived := smallRelease(t)
	cache := filepath.Join(t.TempDir(), "new", "cache")
	from := filepath.Join(t.TempDir(), "renamed.tgz")
	write(t, from, archived)
	write(t, filepath.Join(cache, ".install-killed", "download", "half"), []byte("..."))

	var stages []string
	opts := Options{From: from, CacheDir: cache, Progress: func(stage string) { stages = append(stages, stage) }}
	lib, err := r.install(t.Context(), opts)
	want := Library{filepath.Join(cache, "9.9.9-cpu", "libonnxruntime.so.1"), CPU, SourceInstall, "9.9.9"}
	if err != nil || lib != want {
		t.Fatalf("got %+v, %v\nwant %+v", lib, err, want)
	}
	if got := string(read(t, lib.Path)); got != libraryText {
		t.Errorf("library contains %q", got)
	}
	if got := string(read(t, filepath.Join(filepath.Dir(lib.Path), "LICENSE"))); got != "MIT" {
		t.Errorf("licence contains %q", got)
	}
	if got := strings.Join(stages, " "); got != "wait check verify extract" {
		t.Errorf("stages %q", got)
	}
	wantOnly(t, cache, "9.9.9-cpu")

	// An installed release does not need its archive.
	stages = nil
	must(t, os.Remove(from))
	lib, err = r.install(t.Context(), opts)
	if want.Source = SourceCache; err != nil || lib != want {
		t.Errorf("second time: got %+v, %v\nwant %+v", lib, err, want)
	}
	if got := strings.Join(stages, " "); got != "wait check" {
		t.Errorf("second time: stages %q", got)
	}
}

func TestInstallInvalidFrom(t *testing.T) {
	t.Parallel()
	r, archived := smallRelease(t)
	dir := t.TempDir()
	wrong := filepath.Join(dir, "wrong.tgz")
	write(t, wrong, append([]byte{archived[0] ^ 1}, archived[1:]...))
	short := filepath.Join(dir, "short.tgz")
	write(t, short, archived[1:])
	tests := map[string]struct{ from, text string }{
		"missing file": {filepath.Join(dir, "gone.tgz"), "gone.tgz"},
		"directory":    {dir, "not a file"},
		"wrong file":   {wrong, "sha512"},
		"short file":   {short, "bytes, want"},
		"address":      {"https://example.invalid/small.tgz", "--from"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cache := t.TempDir()
			_, err := r.install(t.Context(), Options{From: test.from, CacheDir: cache})
			if err == nil || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v, want an error containing %q", err, test.text)
			}
			wantOnly(t, cache)
		})
	}
}

func TestInstallReplacesDamaged(t *testing.T) {
	t.Parallel()
	tests := map[string]func(path string) error{
		"one byte":    func(path string) error { return os.WriteFile(path, []byte("P"+libraryText[1:]), 0o644) },
		"truncated":   func(path string) error { return os.Truncate(path, 3) },
		"gone":        os.Remove,
		"a directory": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o755)) },
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, archived := smallRelease(t)
			cache, from := t.TempDir(), filepath.Join(t.TempDir(), "small.tgz")
			write(t, from, archived)
			opts := Options{From: from, CacheDir: cache}
			lib, err := r.install(t.Context(), opts)
			must(t, err)
			must(t, damage(lib.Path))
			lib, err = r.install(t.Context(), opts)
			if err != nil || lib.Source != SourceInstall {
				t.Fatalf("got %+v, %v", lib, err)
			}
			if got := string(read(t, lib.Path)); got != libraryText {
				t.Errorf("library contains %q", got)
			}
			wantOnly(t, cache, "9.9.9-cpu")
		})
	}
}

func TestInstallConcurrently(t *testing.T) {
	t.Parallel()
	r, archived := smallRelease(t)
	cache, from := t.TempDir(), filepath.Join(t.TempDir(), "small.tgz")
	write(t, from, archived)
	const installers = 8
	sources := make(chan string, installers)
	var wg sync.WaitGroup
	for range installers {
		wg.Go(func() {
			lib, err := r.install(t.Context(), Options{From: from, CacheDir: cache})
			if err != nil {
				t.Error(err)
			}
			sources <- lib.Source
		})
	}
	wg.Wait()
	close(sources)
	count := map[string]int{}
	for source := range sources {
		count[source]++
	}
	if count[SourceInstall] != 1 || count[SourceCache] != installers-1 {
		t.Errorf("sources %v, want one installation", count)
	}
	wantOnly(t, cache, "9.9.9-cpu")
}

func TestInstallWaitsForLockUntilCancelled(t *testing.T) {
	t.Parallel()
	r, _ := smallRelease(t)
	cache := t.TempDir()
	lock := flock.New(filepath.Join(cache, ".lock"))
	must(t, lock.Lock())
	defer func() { must(t, lock.Unlock()) }()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("cancelled by the user")
	_, err := r.install(ctx, Options{CacheDir: cache, Progress: func(stage string) {
		if stage == "wait" {
			cancel(stop)
		}
	}})
	if !errors.Is(err, stop) || !strings.Contains(err.Error(), ".lock") {
		t.Errorf("got %v, want %v", err, stop)
	}
}

func TestInstallCancelledLeavesNothing(t *testing.T) {
	t.Parallel()
	r, archived := smallRelease(t)
	cache, from := t.TempDir(), filepath.Join(t.TempDir(), "small.tgz")
	write(t, from, archived)
	for _, stage := range []string{"verify", "extract"} {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := r.install(ctx, Options{From: from, CacheDir: cache, Progress: func(now string) {
			if now == stage {
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled in %s: %v", stage, err)
		}
		wantOnly(t, cache)
	}
}

func TestInstallWithoutClient(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for client, part := range map[string]string{ClientNPM: "npm", ClientPip: "pip3, pip, python3", ClientCurl: "curl", ClientMaven: "mvn"} {
		r, err := releaseFor(map[bool]string{true: CUDA, false: CPU}[client == ClientMaven], "linux", "amd64")
		must(t, err)
		sources, err := r.sourcesOf(client)
		must(t, err)
		cache := t.TempDir()
		_, err = r.install(t.Context(), Options{CacheDir: cache, Client: client})
		if !errors.Is(err, ErrClientMissing) || !errors.Is(err, ErrDownload) {
			t.Fatalf("%s: %v, want %v", client, err, ErrClientMissing)
		}
		for _, part := range []string{part, "install ", "--from", sources[0].Archive.Name} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error does not contain %q: %v", client, part, err)
			}
		}
		wantOnly(t, cache)
	}
}

// script installs a shell script as npm.
func script(t *testing.T, lines string) {
	t.Helper()
	bin := t.TempDir()
	write(t, filepath.Join(bin, "npm"), []byte("#!/bin/sh\n"+lines+"\n"))
	must(t, os.Chmod(filepath.Join(bin, "npm"), 0o755))
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

func TestInstallClientFails(t *testing.T) {
	script(t, "echo npm error code E404 >&2; exit 7")
	r, err := releaseFor(CPU, "linux", "amd64")
	must(t, err)
	cache := t.TempDir()
	_, err = r.install(t.Context(), Options{CacheDir: cache, Client: ClientNPM})
	if err == nil || !strings.Contains(err.Error(), "E404") || !strings.Contains(err.Error(), "--from") {
		t.Errorf("error does not contain cause and remedy: %v", err)
	}
	wantOnly(t, cache)
}

// TestInstallCancelsClient: cancelling ends the client and its children, which would otherwise keep its output open.
func TestInstallCancelsClient(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "started")
	must(t, syscall.Mkfifo(pipe, 0o600))
	script(t, "sleep 600 & echo started > "+pipe+"; wait")
	r, err := releaseFor(CPU, "linux", "amd64")
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var cancelled time.Time
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := os.ReadFile(pipe) // until the script runs
		if err != nil {
			t.Error(err)
		}
		cancelled = time.Now()
		cancel()
	})
	cache := t.TempDir()
	_, err = r.install(ctx, Options{CacheDir: cache, Client: ClientNPM})
	wg.Wait()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if took := time.Since(cancelled); took >= killGrace {
		t.Errorf("ending the client took %v", took)
	}
	wantOnly(t, cache)
}

func TestInstallUnknownProvider(t *testing.T) {
	t.Parallel()
	if _, err := Install(t.Context(), Options{EP: "tpu", CacheDir: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "tpu") {
		t.Errorf("got %v", err)
	}
	for _, platform := range [][3]string{{CUDA, "linux", "arm64"}, {CUDA, "darwin", "arm64"}, {CPU, "plan9", "386"}} {
		_, err := releaseFor(platform[0], platform[1], platform[2])
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), EnvVar) {
			t.Errorf("%v: %v", platform, err)
		}
	}
}

// TestReleasesArePinned: every archive and member has a size and a checksum.
func TestReleasesArePinned(t *testing.T) {
	t.Parallel()
	for _, platform := range [][3]string{
		{CPU, "linux", "amd64"}, {CPU, "linux", "arm64"}, {CPU, "darwin", "arm64"}, {CUDA, "linux", "amd64"},
	} {
		r, err := releaseFor(platform[0], platform[1], platform[2])
		must(t, err)
		if tooOld(r.Version) {
			t.Errorf("%v: version %s is too old for the binding", platform, r.Version)
		}
		sizes := map[int64]bool{}
		for _, s := range r.Sources {
			algorithm, digest, _ := strings.Cut(s.Archive.Digest, ":")
			sum, err := base64.StdEncoding.DecodeString(digest)
			length := sha512.Size
			if algorithm == "sha256" {
				sum, err = hex.DecodeString(digest)
				length = sha256.Size
			}
			if err != nil || len(sum) != length || s.Archive.Size == 0 || sizes[s.Archive.Size] {
				t.Errorf("%v: archive %+v is not pinned: %v", platform, s.Archive, err)
			}
			sizes[s.Archive.Size] = true // --from selects the source by the size
			if s.Files[0].Name != r.Sources[0].Files[0].Name {
				t.Errorf("%v: %s installs %s", platform, s.Client, s.Files[0].Name)
			}
			names := map[string]bool{}
			for _, m := range s.Files {
				if sum, err := hex.DecodeString(m.SHA256); err != nil || len(sum) != sha256.Size || m.Size == 0 || names[m.Name] {
					t.Errorf("%v: member %+v is not pinned: %v", platform, m, err)
				}
				names[m.Name] = true
			}
		}
	}
}

func TestInstallThroughNPM(t *testing.T) {
	if testing.Short() {
		t.Skip("installs through npm: make test-all")
	}
	t.Parallel()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is not installed")
	}
	if _, err := releaseFor(CPU, runtime.GOOS, runtime.GOARCH); err != nil {
		t.Skip(err)
	}
	cache := t.TempDir()
	lib, err := Install(t.Context(), Options{CacheDir: cache, Client: ClientNPM})
	must(t, err)
	if runtime.GOOS == "linux" {
		if version, err := elfVersion(lib.Path); err != nil || version != lib.Version {
			t.Errorf("the library is version %q (%v), want %q", version, err, lib.Version)
		}
	}
	again, err := Install(t.Context(), Options{CacheDir: cache})
	if lib.Source = SourceCache; err != nil || again != lib {
		t.Errorf("second time: got %+v, %v\nwant %+v", again, err, lib)
	}
	found, err := Locate(LocateOptions{CacheDir: cache, EP: CPU, Environ: func(string) string { return "" }})
	if err != nil || found != lib {
		t.Errorf("located %+v, %v\nwant %+v", found, err, lib)
	}
}
