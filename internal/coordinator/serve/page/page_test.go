package page

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func get(t *testing.T, path string, header ...string) *http.Response {
	t.Helper()
	h, err := Handler()
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestHandler(t *testing.T) {
	t.Parallel()
	plain := get(t, "/")
	defer plain.Body.Close()
	if kind := plain.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/html") {
		t.Errorf("the page has the type %q", kind)
	}
	known := get(t, "/", "If-None-Match", plain.Header.Get("ETag"))
	defer known.Body.Close()
	missing := get(t, "/dist/app.js")
	defer missing.Body.Close()
	if known.StatusCode != http.StatusNotModified || missing.StatusCode != http.StatusNotFound {
		t.Errorf("statuses %d and %d, want 304 and 404", known.StatusCode, missing.StatusCode)
	}
}

// maxScript is the largest size of the page's script for a browser, in bytes.
const maxScript = 100_000

func TestScriptIsSmall(t *testing.T) {
	t.Parallel()
	script := get(t, "/app.js", "Accept-Encoding", "gzip")
	defer script.Body.Close()
	sent, err := io.ReadAll(script.Body)
	if err != nil {
		t.Fatal(err)
	}
	if len(sent) > maxScript || script.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("the script has %d bytes with the encoding %q; want gzip and at most %d", len(sent), script.Header.Get("Content-Encoding"), maxScript)
	}
	r, err := gzip.NewReader(strings.NewReader(string(sent)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil || !strings.Contains(string(text), "EventSource") {
		t.Errorf("the script has %d bytes without an event stream, %v", len(text), err)
	}
}

// TestAttackOneClock: the page subtracts no time of a record, which another machine wrote, from the time of the browser. Ages come from the API.
func TestAttackOneClock(t *testing.T) {
	t.Parallel()
	own := map[string]bool{"events.js": true, "Connection.jsx": true} // times of this browser on both sides
	files, err := filepath.Glob("src/*.js*")
	if err != nil || len(files) < 20 {
		t.Fatalf("found %d sources, %v", len(files), err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "Date.now") && !own[filepath.Base(name)] {
			t.Errorf("%s reads the clock of the browser; show age_s of the API in place of a difference of times", name)
		}
	}
}

// TestPageIsBuilt builds the page again from the locked packages.
func TestPageIsBuilt(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the page with npm: make test-all")
	}
	t.Parallel()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is not on PATH: dist is not compared with its sources; install npm")
	}
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	const here, report = "internal/coordinator/serve/page", "internal/report/page"
	if err := os.CopyFS(filepath.Join(work, here, "src"), os.DirFS("src")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc", "build.mjs"} {
		data, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(work, here, name), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	npm := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), "npm", args...)
		cmd.Dir = filepath.Join(work, here)
		return cmd.CombinedOutput()
	}
	if out, err := npm("ci", "--ignore-scripts"); err != nil {
		t.Skipf("the packages of the page cannot be installed, so dist is not compared with its sources; check the registry of npm: %v\n%s", err, out)
	}
	if out, err := npm("run", "build"); err != nil {
		t.Fatalf("build the page: %v\n%s", err, out)
	}
	for _, name := range []string{here + "/dist/app.js", here + "/dist/style.css", here + "/dist/index.html", here + "/dist/icon.svg", report + "/dist/script.js", report + "/dist/style.css"} {
		want, err := os.ReadFile(filepath.Join(work, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != string(want) {
			t.Errorf("%s is not built from src, %v; run: make page", name, err)
		}
	}
}
