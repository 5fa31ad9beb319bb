package api_test

import (
	"errors"
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
