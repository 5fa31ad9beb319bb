package api_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ddiff/api"
)

// TestAttackServerAddress: the error of an address does not repeat credentials in it.
func TestAttackServerAddress(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"https://USER:secret@host", "https://USER@host:8080", "https://USER:sec%ret@host", "https://USER:secret@host:port", "USER:secret@host",
		"ftp://USER:secret@host", "https://USER:secret@", "https://host?token=secret", "https://host/#secret", "https://USER:se/cret@host", "//USER:secret@host",
	} {
		_, err := api.NewClient(api.ClientConfig{URL: address})
		if !errors.Is(err, api.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", address, err)
		} else if strings.Contains(err.Error(), "USER") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error repeats the credentials: %v", address, err)
		}
	}
	if _, err := api.NewClient(api.ClientConfig{URL: "https://host:8080"}); err != nil {
		t.Error(err)
	}
}

// TestAttackEndlessAnswer: an answer without an end is an error.
func TestAttackEndlessAnswer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		block := make([]byte, 1<<20)
		for range 4 << 10 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	c, err := api.NewClient(api.ClientConfig{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Workers(t.Context()); !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), "more than 268435456 bytes") {
		t.Errorf("error %v", err)
	}
}

// TestAttackLocalhost: another user of the machine who listens on ::1 does not get the token of a client of localhost.
func TestAttackLocalhost(t *testing.T) {
	t.Parallel()
	server := func(at string, answer http.HandlerFunc) net.Listener {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", at)
		if err != nil {
			t.Skipf("this machine has no address of the other kind: %v", err)
		}
		s := &http.Server{Handler: answer, ReadHeaderTimeout: time.Second}
		go s.Serve(l) //nolint:errcheck // until it is closed
		t.Cleanup(func() { _ = s.Close() })
		return l
	}
	own := server("127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("the server gets no token: %v", r.Header)
		}
		_, _ = io.WriteString(w, `{"campaigns":[]}`)
	})
	_, port, _ := net.SplitHostPort(own.Addr().String())
	server("[::1]:"+port, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another user gets %s", r.Header.Get("Authorization"))
	})
	for _, host := range []string{"localhost", "LOCALHOST", "localhost."} {
		c, err := api.NewClient(api.ClientConfig{URL: "http://" + host + ":" + port, Token: "secret"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Campaigns(t.Context(), false); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}
