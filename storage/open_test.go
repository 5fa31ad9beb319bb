package storage_test

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/s3test"
	"ddiff/storage"
)

func open(t *testing.T, address string, o storage.Options) storage.Store {
	t.Helper()
	opened, err := storage.Open(t.Context(), address, o)
	must(t, err)
	t.Cleanup(func() { must(t, opened.Close()) })
	return opened.Store
}

func TestOpenDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new and: odd")
	for _, address := range []string{dir, (&url.URL{Scheme: "file", Path: dir}).String()} {
		must(t, open(t, address, storage.Options{}).Put(t.Context(), "a/b", []byte(address)))
		got, err := os.ReadFile(filepath.Join(dir, "a", "b"))
		if err != nil || string(got) != address {
			t.Errorf("after a Put to %s the file holds %q, %v", address, got, err)
		}
	}
}

func TestOpenLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	locked, err := storage.Open(t.Context(), dir, storage.Options{Lock: true})
	must(t, err)
	_, err = storage.Open(t.Context(), dir, storage.Options{Lock: true})
	wantError(t, "a second Open with Lock", err, storage.ErrLocked)
	open(t, dir, storage.Options{})
	must(t, locked.Close())
	open(t, dir, storage.Options{Lock: true})
}

func TestOpenReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "missing")
	if _, err := storage.Open(t.Context(), dir, storage.Options{ReadOnly: true}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing directory: %v, want fs.ErrNotExist", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory was created: %v", err)
	}
	must(t, open(t, dir, storage.Options{}).Put(t.Context(), "k", []byte("x")))
	wantGet(t, open(t, dir, storage.Options{ReadOnly: true}), "k", []byte("x"))
}

func TestOpenS3Address(t *testing.T) {
	server := s3test.Start(t, s3test.Options{})
	t.Setenv("AWS_ACCESS_KEY_ID", server.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", server.SecretKey)
	bucket := server.Bucket(t)
	address := "s3://" + bucket + "/out?region=us-east-1&endpoint=" + url.QueryEscape(server.Endpoint)
	store := open(t, address, storage.Options{Lock: true})
	must(t, store.Create(t.Context(), "k", []byte("x")))
	wantGet(t, openS3(t, server.Config(bucket)), "out/k", []byte("x"))
}

func TestOpenRefusesAddresses(t *testing.T) {
	t.Parallel()
	for address, word := range map[string]string{
		"":                       "empty",
		"gs://bucket/prefix":     `scheme "gs://" is not supported; use a directory, file:// or s3://`,
		"https://me:secret@host": "https",
		"file://host/path":       "file:///PATH",
		"file:///path?query":     "file:///PATH",
		"s3://me:secret@bucket":  "credentials",
		"s3://B/prefix":          "Bucket",
	} {
		opened, err := storage.Open(t.Context(), address, storage.Options{})
		if err == nil {
			must(t, opened.Close())
			t.Errorf("Open(%q) succeeds", address)
			continue
		}
		wantError(t, "Open "+address, err, storage.ErrAddress)
		if !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("Open(%q) = %q, want one line with %q and without secrets", address, err, word)
		}
	}
}

func TestAbsoluteAndLocate(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	must(t, err)
	for _, c := range []struct{ address, absolute, located string }{
		{"out", filepath.Join(here, "out"), "out/sheets/a.png"},
		{"/out/", "/out", "/out/sheets/a.png"},
		{"file:///out", "file:///out", "file:///out/sheets/a.png"},
		{"s3://bucket", "s3://bucket", "s3://bucket/sheets/a.png"},
		{"s3://bucket/p/?region=r", "s3://bucket/p/?region=r", "s3://bucket/p/sheets/a.png?region=r"},
	} {
		if got, err := storage.Absolute(c.address); err != nil || got != c.absolute {
			t.Errorf("Absolute(%q) = %q, %v, want %q", c.address, got, err, c.absolute)
		}
		if got := storage.Locate(c.address, "sheets/a.png"); got != c.located {
			t.Errorf("Locate(%q) = %q, want %q", c.address, got, c.located)
		}
	}
	if _, err := storage.Absolute("gs://bucket"); !errors.Is(err, storage.ErrAddress) {
		t.Errorf("Absolute of an unsupported scheme = %v, want ErrAddress", err)
	}
}
