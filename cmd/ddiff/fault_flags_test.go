package main_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/install"
)

// TestWrongFlags: wrong words and numbers end a command at once, with one line.
func TestWrongFlags(t *testing.T) {
	t.Parallel()
	coffee := photograph("coffee")
	for _, c := range []struct {
		args    []string
		code    int
		message []string
	}{
		{[]string{"-"}, 2, []string{"unknown command \"-\"; see: ddiff --help\n"}},
		{[]string{"--"}, 2, []string{"unknown command \"--\"; see: ddiff --help\n"}},
		{[]string{"run", "--images", coffee, "--task", "hdr", "--size", "32", "--threads", "100000"}, 2, []string{"--threads: 100000 is above 1024"}},
		{[]string{"run", "--images", coffee, "--task", "hdr", "--size", "33"}, 2, []string{"--size: 33 is not a multiple of 8", "use 32"}},
		{[]string{"run", "--images", coffee, "--task", "sr"}, 2, []string{`did you mean "super_resolution"?`}},
		{[]string{"run", "--images", coffee, "--task", "xx"}, 2, []string{`unknown task "xx" (valid: `}},
		{[]string{"run", "--images", coffee, "--task", "hdr", "--size", "32", "--steps", "2", "--out", "/proc/ddiff"}, 6, []string{"open output /proc/ddiff", "output is not writable"}},
		{[]string{"run", "--images", coffee, "--task", "gaussian_deblur", "--set", "gamma0=1,2"}, 2, []string{"--set gamma0=1,2: has no effect on gaussian_deblur with data_step: exact"}},
		{[]string{"tune", coffee, "--task", "gaussian_deblur", "--set", "gamma0=1,2", "--out", t.TempDir()}, 2, []string{"--set gamma0=1,2: has no effect on gaussian_deblur with data_step: exact"}},
		{[]string{"restore", coffee, "--task", "denoise", "--out", "/proc/x.jpg", "--format", "png"}, 2, []string{"--out /proc/x.jpg is a jpeg file, and --format is png; leave --format out"}},
		{[]string{"restore", coffee, "--task", "denoise", "--preview", "48", "--out", "/proc/x", "--format", "tiff"}, 2, []string{"--format tiff: a preview is a PNG file; leave --format out"}},
		{[]string{"restore", coffee, "--task", "denoise", "--preview", "48", "--out", "/proc/x.jpg"}, 2, []string{"--out /proc/x.jpg: a preview is a PNG file; name one, or a folder"}},
		{[]string{"restore", coffee, "--task", "denoise", "--keep-observed", "--out", "/proc/x"}, 2, []string{"observed pixels are kept only in inpainting with a mask, task denoise observes none as they are; do not ask to keep them"}},
		{[]string{"runtime", "install", "--ep", "foo"}, 2, []string{`unknown execution provider "foo": use "cpu", "cuda" or "openvino"`}},
	} {
		args := c.args
		if args[0] == "run" && args[len(args)-2] != "--out" {
			args = append(args, "--out", t.TempDir())
		}
		e := ddiff(t, args...)
		wantCode(t, e, c.code)
		wantMessage(t, e, c.message...)
	}
}

// TestWrongFlagsCreateNothing: a wrong flag ends a command before its output exists.
func TestWrongFlagsCreateNothing(t *testing.T) {
	skipLong(t)
	t.Parallel()
	for message, flags := range map[string][]string{
		"--allow-network":          {"--allow-network", "office"},
		"Hosts":                    {"--allow-host", "*"},
		"--threads":                {"--threads", "-1"},
		"--device":                 {"--device", "abacus"},
		"--precision":              {"--precision", "fp1"},
		"webgpu has only device 0": {"--device", "webgpu:1"},
		"--streams":                {"--streams", "-1"},
		"--source-ca":              {"--source-ca", "/none.pem"},
		"--memory-share":           {"--memory-share", "1.5"},
		"--stage-timeout":          {"--stage-timeout", "restore=-1s"},

		`--log-format: "xml" is none of text, json`: {"--log-format", "xml"},
	} {
		out := filepath.Join(t.TempDir(), "out")
		for _, dry := range []string{"--dry-run=false", "--dry-run"} {
			if dry == "--dry-run" && slices.Contains([]string{"--log-format", "--stage-timeout", "--memory-share"}, flags[0]) {
				continue // not used
			}
			e := ddiff(t, append([]string{"run", photograph("coffee"), "--task", "hdr", "--size", "32", "--out", out, dry}, flags...)...)
			wantCode(t, e, 2)
			wantMessage(t, e, message)
		}
		if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q created the output", flags)
		}
	}
}

// TestIgnoredEnvironment: a variable whose value OpenTelemetry ignores is named in one line.
func TestIgnoredEnvironment(t *testing.T) {
	skipLong(t)
	t.Parallel()
	lib, err := library()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), program, small("--images", photograph("coffee"), "--task", "hdr", "--quiet", "--out", t.TempDir())...)
	cmd.Env = append(environment(), install.EnvVar+"="+lib.Path, "OTEL_SDK_DISABLED=perhaps", "OTEL_BSP_SCHEDULE_DELAY=soon")
	e := end(t, cmd)
	wantCode(t, e, 0)
	const want = "ddiff: ignored variables of the environment: OTEL_SDK_DISABLED is not true or false; OTEL_BSP_SCHEDULE_DELAY is not a number of milliseconds\n"
	if e.stderr != want {
		t.Errorf("standard error %q, want %q", e.stderr, want)
	}
}

// TestQuietServer: a server that sends more than one answer makes net/http write to the log of package log, which is silent.
func TestQuietServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func(c net.Conn) { c.Close() }(conn)
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}))
	t.Cleanup(server.Close)
	e := restore(t, "--images", server.URL+"/a.png", "--task", "hdr", "--quiet", "--allow-http", "--allow-network", "127.0.0.0/8", "--source-cache", "-1",
		"--out", filepath.Join(t.TempDir(), "out"))
	wantCode(t, e, 3)
	if n := strings.Count(e.stderr, "\n"); n != 2 {
		t.Errorf("%d lines on standard error, want 2\n%v", n, e)
	}
}
