package main_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
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
		{[]string{"-"}, 2, []string{`unknown command "-"`}},
		{[]string{"--"}, 2, []string{`unknown command "--"`}},
		{[]string{"run", "--images", coffee, "--task", "hdr", "--size", "32", "--threads", "100000"}, 2, []string{"--threads: 100000 is above 1024"}},
		{[]string{"run", "--images", coffee, "--task", "hdr", "--size", "33"}, 2, []string{"--size: 33 is not a multiple of 8", "use 32"}},
		{[]string{"run", "--images", coffee, "--task", "sr"}, 2, []string{`did you mean "super_resolution"?`}},
		{[]string{"run", "--images", coffee, "--task", "xx"}, 2, []string{`unknown task "xx" (valid: `}},
		{[]string{"run", "--images", coffee, "--task", "hdr", "--size", "32", "--steps", "2", "--out", "/proc/ddiff"}, 6, []string{"open output /proc/ddiff", "output is not writable"}},
		{[]string{"runtime", "install", "--ep", "foo"}, 2, []string{`unknown execution provider "foo": use "cpu" or "cuda"`}},
		{[]string{"doctor", "--only", "speed"}, 2, []string{"--only needs --gpu"}},
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
