package storage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/internal/s3test"
	"ddiff/storage"
)

// openS3 opens a store until the end of the test.
func openS3(t *testing.T, config storage.S3Config) *storage.S3 {
	t.Helper()
	s, err := storage.OpenS3(t.Context(), config)
	must(t, err)
	t.Cleanup(s.Close)
	return s
}

// startS3 starts a server with a bucket.
func startS3(t *testing.T) storage.S3Config {
	t.Helper()
	server := s3test.Start(t, s3test.Options{})
	return server.Config(server.Bucket(t))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError checks the sentinel of an error.
func wantError(t *testing.T, action string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s = %v, want %v", action, err, want)
	}
}

// wantGet checks the bytes of an object.
func wantGet(t *testing.T, s storage.Store, key string, want []byte) {
	t.Helper()
	got, err := s.Get(t.Context(), key)
	must(t, err)
	if !bytes.Equal(got, want) {
		t.Fatalf("Get(%q) = %d bytes that differ from the %d written bytes", key, len(got), len(want))
	}
}

// randomBytes returns n bytes that depend only on seed.
func randomBytes(n int, seed byte) []byte {
	data := make([]byte, n)
	rand.NewChaCha8([32]byte{seed}).Read(data) //nolint:errcheck // never fails
	return data
}

func TestS3Contract(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute: make test-all")
	}
	t.Parallel()
	server := s3test.Start(t, s3test.Options{})
	t.Run("with a prefix", func(t *testing.T) {
		config := server.Config(server.Bucket(t))
		// The server removes a folder with its last object, even while another store creates an object in it.
		above := config
		above.Prefix = "results"
		must(t, openS3(t, above).Put(t.Context(), "keep", nil))
		var count atomic.Int64
		testContract(t, func(t *testing.T) storage.Store {
			own := config
			own.Prefix = fmt.Sprintf("results/store-%d", count.Add(1))
			return openS3(t, own)
		})
	})
	t.Run("whole bucket", func(t *testing.T) {
		testContract(t, func(t *testing.T) storage.Store { return openS3(t, server.Config(server.Bucket(t))) })
	})
}

// TestS3LargeCreate creates objects above 16 MiB, which minio-go would upload in parts without the condition.
func TestS3LargeCreate(t *testing.T) {
	t.Parallel()
	s := openS3(t, startS3(t))
	first, second := randomBytes(20<<20, 1), randomBytes(20<<20, 2)
	must(t, s.Create(t.Context(), "large", first))
	wantError(t, "second Create", s.Create(t.Context(), "large", second), storage.ErrExists)
	wantGet(t, s, "large", first)
	must(t, s.Put(t.Context(), "large", second))
	wantGet(t, s, "large", second)
}

func TestS3MaxBytes(t *testing.T) {
	t.Parallel()
	config := startS3(t)
	must(t, openS3(t, config).Put(t.Context(), "five", []byte("12345")))
	config.MaxBytes = 4
	s := openS3(t, config)
	_, err := s.Get(t.Context(), "five")
	wantError(t, "Get", err, storage.ErrTooLarge)
	wantError(t, "Put", s.Put(t.Context(), "p", []byte("12345")), storage.ErrTooLarge)
	wantError(t, "Create", s.Create(t.Context(), "c", []byte("12345")), storage.ErrTooLarge)
	_, err = s.Stat(t.Context(), "p")
	wantError(t, "Stat of the refused object", err, storage.ErrNotFound)
	// An object of exactly the limit is read, also in two parts.
	config.MaxBytes = 5
	s = openS3(t, config)
	data, err := s.Get(t.Context(), "five")
	must(t, err)
	parts, err := s.GetChecked(t.Context(), "five", 2, func([]byte, int64) error { return nil })
	must(t, err)
	if string(data) != "12345" || string(parts) != "12345" {
		t.Errorf("read %q and %q, want 12345", data, parts)
	}
}

// TestS3PrefixesAreSeparate checks that a prefix ends at a slash and that a listing skips invalid keys.
func TestS3PrefixesAreSeparate(t *testing.T) {
	t.Parallel()
	config := startS3(t)
	whole := openS3(t, config)
	config.Prefix = "run"
	run := openS3(t, config)
	config.Prefix = "run2"
	run2 := openS3(t, config)
	config.Prefix = ".ddiff-old" // a valid first element, unlike ".ddiff"
	old := openS3(t, config)
	must(t, run.Put(t.Context(), "k", []byte("run")))
	must(t, run2.Put(t.Context(), "k", []byte("run2")))
	must(t, old.Put(t.Context(), "k", nil))
	for name, c := range map[string]struct {
		store *storage.S3
		want  string
	}{
		"run": {run, "k"}, "run2": {run2, "k"}, "whole": {whole, ".ddiff-old/k run/k run2/k"},
	} {
		if got := strings.Join(keys(t, c.store, ""), " "); got != c.want {
			t.Errorf("store %s lists %q, want %q", name, got, c.want)
		}
	}
	wantGet(t, whole, "run/k", []byte("run"))
}

// TestS3LimitsRequests: a call waits for a slot or for the end of its context, and a listing holds no slot while its
// consumer calls the store.
func TestS3LimitsRequests(t *testing.T) {
	t.Parallel()
	p := startProxied(t)
	s := openS3(t, p.config)
	storage.SetRequests(s, 1)
	must(t, s.Put(t.Context(), "k", []byte("x")))
	entered, leave := make(chan struct{}), make(chan struct{})
	block, requests := first(1, http.MethodGet, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		close(entered)
		<-leave
		forward.ServeHTTP(w, r)
	})
	p.set(block)
	var group sync.WaitGroup
	group.Go(func() { wantGet(t, s, "k", []byte("x")) })
	<-entered
	for name, call := range map[string]func(ctx context.Context) error{
		"get":    func(ctx context.Context) error { _, err := s.Get(ctx, "k"); return err },
		"put":    func(ctx context.Context) error { return s.Put(ctx, "k", nil) },
		"delete": func(ctx context.Context) error { return s.Delete(ctx, "k") },
		"stat":   func(ctx context.Context) error { _, err := s.Stat(ctx, "k"); return err },
		"range":  func(ctx context.Context) error { _, err := s.GetRange(ctx, "k", "", 0, 1); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		wantError(t, name+" without a slot", call(ctx), context.DeadlineExceeded)
		cancel()
	}
	close(leave)
	group.Wait()
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	for info, err := range s.List(t.Context(), "") {
		must(t, err)
		wantGet(t, s, info.Key, []byte("x"))
	}
}

// TestQueryRole: a machine's role is not asked for where the variable forbids it, those of pods and containers are.
func TestQueryRole(t *testing.T) {
	const machine, pod, full, relative = "AWS_EC2_METADATA_DISABLED", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
	for _, c := range []struct {
		set  map[string]string
		want bool
	}{
		{nil, true}, {map[string]string{machine: "true"}, false}, {map[string]string{machine: "false"}, true},
		{map[string]string{machine: "true", pod: "/token"}, true}, {map[string]string{machine: "true", full: "http://x"}, true},
		{map[string]string{machine: "true", relative: "/x"}, true},
	} {
		for _, name := range []string{machine, pod, full, relative} {
			t.Setenv(name, c.set[name])
		}
		if got := storage.QueryRole(); got != c.want {
			t.Errorf("%v: %v", c.set, got)
		}
	}
}

// TestS3UnknownHost: an address without endpoint whose bucket is on another server ends with one line that says how to give the server.
func TestS3UnknownHost(t *testing.T) {
	t.Parallel()
	config := storage.S3Config{Endpoint: "http://s3.test", Bucket: "photos", Region: "us-east-1", AccessKey: "key", SecretKey: "secret"}
	config = config.WithDial(func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "photos.s3.test", IsNotFound: true}}
	})
	_, err := storage.OpenS3(t.Context(), config)
	if !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "no host photos.s3.test") ||
		!strings.Contains(err.Error(), "s3://photos/PREFIX?endpoint=https://HOST or in AWS_ENDPOINT_URL") || strings.Contains(err.Error(), "dial") {
		t.Errorf("error %v", err)
	}
}

func TestS3AddressingAndRegion(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t, s3test.Options{Domain: "s3.test"})
	_, port, err := net.SplitHostPort(strings.TrimPrefix(server.Endpoint, "http://"))
	must(t, err)
	for _, addressing := range []storage.Addressing{
		storage.AddressingAuto, storage.AddressingPath, storage.AddressingVirtualHost,
	} {
		for _, region := range []string{"us-east-1", ""} {
			t.Run(fmt.Sprintf("%v in region %q", addressing, region), func(t *testing.T) {
				t.Parallel()
				config := server.Config(server.Bucket(t))
				config.Addressing, config.Region = addressing, region
				config.Endpoint = "http://s3.test:" + port
				var asked atomic.Value
				config = config.WithDial(func(ctx context.Context, network, address string) (net.Conn, error) {
					asked.Store(address)
					return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+port)
				})
				s := openS3(t, config)
				must(t, s.Create(t.Context(), "a/b", []byte("x")))
				wantGet(t, s, "a/b", []byte("x"))
				want := "s3.test:" + port
				if addressing == storage.AddressingVirtualHost {
					want = config.Bucket + "." + want
				}
				if asked.Load() != want {
					t.Errorf("client requests %v, want %s", asked.Load(), want)
				}
			})
		}
	}
}
