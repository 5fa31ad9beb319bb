package install

import (
	"archive/zip"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// copying is a client's script that copies the archive $1 into the directory of its last argument.
const copying = `for last; do :; done; cp "$ARCHIVE" "${last#*=}"`

// TestInstallTriesClients: the first client that works installs its own build; the others have one line each.
func TestInstallTriesClients(t *testing.T) {
	shells := map[string]string{}
	for _, name := range []string{"cp", "sh"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skip(err)
		}
		shells[name] = path
	}
	tests := map[string]struct {
		programs  map[string]string // scripts in PATH
		client    string            // of the options
		want      string            // library text
		fallbacks []string
		err       []string
	}{
		"npm only": {programs: map[string]string{"npm": copying}, want: "of npm"},
		"pip only": {programs: map[string]string{"pip": copying}, want: "of pip", fallbacks: []string{"npm pip: not installed: npm"}},
		"python's pip only": {programs: map[string]string{"python3": `test "$1 $2" = "-m pip" && ` + copying}, want: "of pip",
			fallbacks: []string{"npm pip: not installed: npm"}},
		"curl only": {programs: map[string]string{"curl": copying}, want: "of curl",
			fallbacks: []string{"npm pip: not installed: npm", "pip curl: not installed: pip3, pip"}},
		"all": {programs: map[string]string{"npm": copying, "pip3": copying, "curl": copying}, want: "of npm"},
		"npm fails": {programs: map[string]string{"npm": "echo E404 >&2; exit 7", "pip3": copying}, want: "of pip",
			fallbacks: []string{"npm pip: run npm pack"}},
		"npm's registry has another file": {programs: map[string]string{"npm": `for last; do :; done; echo other > "${last#*=}/npm.tgz"`, "pip3": copying},
			want: "of pip", fallbacks: []string{"npm pip: verify"}},
		"named pip":        {programs: map[string]string{"npm": copying, "pip3": copying}, client: ClientPip, want: "of pip"},
		"named curl":       {programs: map[string]string{"npm": copying, "pip3": copying, "curl": copying}, client: ClientCurl, want: "of curl"},
		"named is missing": {programs: map[string]string{"npm": copying}, client: ClientPip, err: []string{"pip: not installed", "pip.whl"}},
		"all fail": {programs: map[string]string{"npm": "exit 7", "pip3": "echo cannot connect; exit 1", "curl": "echo error: 404; exit 22"},
			fallbacks: []string{"npm pip: run npm", "pip curl: run pip3"},
			err:       []string{"npm: run npm", "pip: run pip3", "cannot connect", "curl: run curl", "404", "npm.tgz or pip.whl or curl.tgz", "--from"}},
		"unknown": {client: "wget", err: []string{`"wget"`, "npm, pip, curl"}},
		"other":   {client: ClientMaven, err: []string{"maven", "npm, pip, curl"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bin, archives := t.TempDir(), t.TempDir()
			for name, path := range shells {
				must(t, os.Symlink(path, filepath.Join(bin, name)))
			}
			t.Setenv("PATH", bin)
			r := release{Version: "9.9.9", EP: CPU}
			for _, name := range []string{ClientNPM, ClientPip, ClientCurl} {
				text := "of " + name
				suffix, packed := tarGzip, tarball(t, entry{name: "p/lib.so", content: text})
				if name == ClientPip {
					suffix, packed = zipped, zipball(t, entry{name: "p/lib.so", content: text})
				}
				s := pin(packed, suffix, "p/lib.so", text).Sources[0]
				s.Client, s.Package, s.Archive.Name = name, "x", name+suffix
				path := filepath.Join(archives, s.Archive.Name)
				write(t, path, packed)
				r.Sources = append(r.Sources, s)
			}
			for program, lines := range test.programs {
				archive := filepath.Join(archives, cmp.Or(map[string]string{"npm": "npm.tgz", "curl": "curl.tgz"}[program], "pip.whl"))
				write(t, filepath.Join(bin, program), []byte("#!/bin/sh\n"+strings.ReplaceAll(lines, "$ARCHIVE", archive)+"\n"))
				must(t, os.Chmod(filepath.Join(bin, program), 0o755))
			}
			var fallbacks []string
			cache := t.TempDir()
			lib, err := r.install(t.Context(), Options{CacheDir: cache, Client: test.client,
				Fallback: func(failed string, err error, next string) {
					fallbacks = append(fallbacks, failed+" "+next+": "+err.Error())
				}})
			if !slices.EqualFunc(fallbacks, test.fallbacks, strings.HasPrefix) {
				t.Errorf("fallbacks %q, want %q", fallbacks, test.fallbacks)
			}
			for _, part := range test.err {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error does not contain %q: %v", part, err)
				}
			}
			if test.err != nil {
				wantOnly(t, cache)
				return
			}
			if err != nil || string(read(t, lib.Path)) != test.want {
				t.Fatalf("got %+v, %v; want the library %q", lib, err, test.want)
			}
			if s, err := installed(r.Sources, filepath.Dir(lib.Path), source.verify); err != nil || "of "+s.Client != test.want {
				t.Errorf("the cache has the library %q, %v; want %q", s.Client, err, test.want)
			}
		})
	}
}

// TestInstallNamedClientReplaces: a named client replaces the library of another one; no name accepts any.
func TestInstallNamedClientReplaces(t *testing.T) {
	t.Parallel()
	first, archived := smallRelease(t)
	packed := tarball(t, entry{name: "p/libonnxruntime.so.1", content: "of curl"})
	other := pin(packed, tarGzip, "p/libonnxruntime.so.1", "of curl").Sources[0]
	other.Client = ClientCurl
	r := release{Version: first.Version, EP: CPU, Sources: append(first.Sources, other)}
	cache, dir := t.TempDir(), t.TempDir()
	from, ofCurl := filepath.Join(dir, "small.tgz"), filepath.Join(dir, "curl.tgz")
	write(t, from, archived)
	write(t, ofCurl, packed)
	for i, step := range []struct{ client, from, source, text string }{
		{"", from, SourceInstall, libraryText},
		{ClientCurl, ofCurl, SourceInstall, "of curl"},
		{"", "", SourceCache, "of curl"},
		{ClientNPM, from, SourceInstall, libraryText},
		{"", ofCurl, SourceCache, libraryText},
	} {
		lib, err := r.install(t.Context(), Options{CacheDir: cache, Client: step.client, From: step.from})
		if err != nil || lib.Source != step.source || string(read(t, lib.Path)) != step.text {
			t.Errorf("step %d: got %+v, %v; want the library %q from %s", i, lib, err, step.text, step.source)
		}
	}
	if _, err := r.install(t.Context(), Options{CacheDir: t.TempDir(), Client: ClientCurl, From: from}); !errors.Is(err, ErrChecksum) {
		t.Errorf("the archive of another client: %v", err)
	}
}

// TestPipArguments: the installed pip finds the pinned wheel in a directory of wheels, whatever Python runs it.
func TestPipArguments(t *testing.T) {
	s, err := releaseFor(CPU, "linux", "amd64")
	must(t, err)
	sources, err := s.sourcesOf(ClientPip)
	must(t, err)
	wheels, dir := t.TempDir(), t.TempDir()
	const metadata = "Metadata-Version: 2.1\nName: onnxruntime\nVersion: " + cpuVersion + "\nRequires-Dist: absent\nRequires-Python: >=3.11\n"
	for i, name := range []string{sources[0].Archive.Name, "onnxruntime-" + cpuVersion + "-cp311-cp311-manylinux_2_28_x86_64.whl",
		"onnxruntime-" + cpuVersion + "-cp312-cp312-manylinux_2_28_aarch64.whl"} {
		var wheel bytes.Buffer
		writer := zip.NewWriter(&wheel)
		info := "onnxruntime-" + cpuVersion + ".dist-info/"
		for name, content := range map[string]string{
			info + "METADATA": metadata, info + "WHEEL": "Wheel-Version: 1.0\nTag: x\n", info + "RECORD": "", "number": strconv.Itoa(i),
		} {
			w, err := writer.Create(name)
			must(t, err)
			if _, err := w.Write([]byte(content)); err != nil {
				t.Fatal(err)
			}
		}
		must(t, writer.Close())
		write(t, filepath.Join(wheels, name), wheel.Bytes())
	}
	t.Setenv("PIP_NO_INDEX", "1")
	t.Setenv("PIP_FIND_LINKS", wheels)
	t.Setenv("PIP_REQUIRE_VIRTUALENV", "1")
	path, err := sources[0].download(t.Context(), dir)
	if errors.Is(err, ErrClientMissing) || err != nil && strings.Contains(err.Error(), "No module named pip") {
		t.Skip(err)
	}
	if err != nil || filepath.Base(path) != sources[0].Archive.Name {
		t.Fatalf("got %s, %v", path, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || !bytes.Equal(read(t, path), read(t, filepath.Join(wheels, filepath.Base(path)))) {
		t.Errorf("pip wrote %v, %v; want the wheel %s", entries, err, sources[0].Archive.Name)
	}
}

// TestCurlArguments: the installed curl follows a redirect to the archive, and reports a status that is an error.
func TestCurlArguments(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a/small.tgz":
			http.Redirect(w, r, "/there", http.StatusFound)
		case "/there":
			fmt.Fprint(w, "archive")
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	s := source{Client: ClientCurl, Package: server.URL + "/a/small.tgz", Archive: archive{Name: "small.tgz"}}
	path, err := s.download(t.Context(), t.TempDir())
	if errors.Is(err, ErrClientMissing) {
		t.Skip(err)
	}
	must(t, err)
	if got := string(read(t, path)); got != "archive" {
		t.Errorf("got %q", got)
	}
	s.Package = server.URL + "/b/small.tgz"
	if _, err := s.download(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("error %v", err)
	}
}

// TestSourcesOfPlatforms: every platform with a CPU build has one for each client.
func TestSourcesOfPlatforms(t *testing.T) {
	t.Parallel()
	for _, platform := range [][2]string{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}} {
		r, err := releaseFor(CPU, platform[0], platform[1])
		must(t, err)
		var names []string
		for _, s := range r.Sources {
			names = append(names, s.Client)
		}
		if !slices.Equal(names, []string{ClientNPM, ClientPip, ClientCurl}) {
			t.Errorf("%v: clients %q", platform, names)
		}
	}
}
