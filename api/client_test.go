package api_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
	if _, err := c.Workers(t.Context()); !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), "more than 256 MiB") {
		t.Errorf("error %v", err)
	}
}
