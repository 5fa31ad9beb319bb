package storage_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/internal/s3test"
	"ddiff/storage"
)

// wantOpenError checks the sentinel, if any, and the words of the error of OpenS3.
func wantOpenError(t *testing.T, config storage.S3Config, want error, words ...string) {
	t.Helper()
	s, err := storage.OpenS3(t.Context(), config)
	if err == nil {
		s.Close()
		t.Fatal("OpenS3 succeeds")
	}
	if want != nil {
		wantError(t, "OpenS3", err, want)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not contain %q", err, word)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error has more than one line: %q", err)
	}
	if secret := config.SecretKey; secret != "" && strings.Contains(err.Error(), secret) {
		t.Errorf("error contains the secret key: %q", err)
	}
}

func TestOpenS3Refuses(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t, s3test.Options{})
	good := server.Config(server.Bucket(t))
	for _, c := range []struct {
		name   string
		change func(*storage.S3Config)
		want   error
		words  []string
	}{
		{"missing bucket", func(c *storage.S3Config) { c.Bucket = "not-there" }, storage.ErrNoBucket, []string{"not-there"}},
		{"wrong secret key", func(c *storage.S3Config) { c.SecretKey = "guessed-wrong" },
			storage.ErrAccess, []string{"SignatureDoesNotMatch"}},
		{"wrong access key", func(c *storage.S3Config) { c.AccessKey = "NOBODY" },
			storage.ErrAccess, []string{"access key"}},
		{"wrong region", func(c *storage.S3Config) { c.Region = "mars-1" }, nil, []string{"mars-1", "us-east-1"}},
		{"unreachable", func(c *storage.S3Config) { c.Endpoint = closedEndpoint(t) },
			storage.ErrUnavailable, []string{"connection refused"}},
		{"https to an http server", func(c *storage.S3Config) { c.Endpoint = strings.TrimPrefix(c.Endpoint, "http://") },
			storage.ErrUnavailable, []string{"http://"}},
		{"missing CA file", func(c *storage.S3Config) { c.CAFile = filepath.Join(t.TempDir(), "none.pem") },
			os.ErrNotExist, []string{"CAFile"}},
		{"invalid field", func(c *storage.S3Config) { c.Timeout = -1 }, nil, []string{"Timeout"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			config := good
			c.change(&config)
			wantOpenError(t, config, c.want, c.words...)
		})
	}
}

// closedEndpoint returns an address without a listener.
func closedEndpoint(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	return server.URL
}

func TestOpenS3Cancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	t.Cleanup(hangs.Close)
	_, err := storage.OpenS3(ctx, storage.S3Config{
		Endpoint: hangs.URL, Bucket: "bucket", Region: "r", AccessKey: "a", SecretKey: "s",
	})
	wantError(t, "OpenS3", err, context.Canceled)
}

func TestOpenS3RemovesItsProbe(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t, s3test.Options{})
	bucket := server.Bucket(t)
	openS3(t, server.Config(bucket))
	if names := files(t, filepath.Join(server.Root, bucket)); len(names) != 0 {
		t.Errorf("bucket contains %q", names)
	}
}

func TestOpenS3TLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	certFile, keyFile := ca.issue(t, "127.0.0.1", time.Now().Add(time.Hour))
	server := s3test.Start(t, s3test.Options{CertFile: certFile, KeyFile: keyFile})
	config := server.Config(server.Bucket(t))
	wantOpenError(t, config, storage.ErrCertificate, "CAFile ($AWS_CA_BUNDLE)", "unknown authority")

	config.CAFile = ca.file
	s := openS3(t, config)
	data := randomBytes(3<<20, 1)
	must(t, s.Create(t.Context(), "k", data))
	wantGet(t, s, "k", data)

	config.CAFile = filepath.Join(t.TempDir(), "empty.pem")
	must(t, os.WriteFile(config.CAFile, []byte("nothing"), 0o600))
	wantOpenError(t, config, nil, "CAFile")
}

func TestOpenS3BadCertificates(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	for _, c := range []struct {
		name, address string
		until         time.Time
		word          string
	}{
		{"expired", "127.0.0.1", time.Now().Add(-time.Hour), "expired"},
		{"another host", "127.0.0.2", time.Now().Add(time.Hour), "127.0.0.2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			certFile, keyFile := ca.issue(t, c.address, c.until)
			server := s3test.Start(t, s3test.Options{CertFile: certFile, KeyFile: keyFile})
			config := server.Config(server.Bucket(t))
			config.CAFile = ca.file
			wantOpenError(t, config, storage.ErrCertificate, c.word)
		})
	}
}

func TestS3ReadOnly(t *testing.T) {
	t.Parallel()
	config := startS3(t)
	must(t, openS3(t, config).Put(t.Context(), "k", []byte("x")))
	config.ReadOnly = true
	s := openS3(t, config)
	wantGet(t, s, "k", []byte("x"))
	wantError(t, "Put", s.Put(t.Context(), "k", nil), storage.ErrReadOnly)
	wantError(t, "Create", s.Create(t.Context(), "new", nil), storage.ErrReadOnly)
	wantError(t, "Delete", s.Delete(t.Context(), "k"), storage.ErrReadOnly)
	wantGet(t, s, "k", []byte("x"))
}

// TestS3CredentialsChain sets environment variables, so it does not run in parallel.
func TestS3CredentialsChain(t *testing.T) {
	server := s3test.Start(t, s3test.Options{})
	explicit := server.Config(server.Bucket(t))
	chain := explicit
	chain.AccessKey, chain.SecretKey = "", ""
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_SESSION_TOKEN",
		"MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD", "MINIO_ACCESS_KEY", "MINIO_SECRET_KEY", "AWS_PROFILE",
		"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_CA_BUNDLE",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AWS_CONFIG_FILE", none)
	wantOpenError(t, chain, storage.ErrAccess, "no credentials", "AWS_ACCESS_KEY_ID")

	chain.Retry = storage.RetryConfig{Attempts: 1}
	var away atomic.Bool
	role := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if away.Load() {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprintf(w, `{"AccessKeyId":%q,"SecretAccessKey":%q,"Expiration":%q}`, server.AccessKey, server.SecretKey, time.Now().UTC().Format(time.RFC3339))
	}))
	t.Cleanup(role.Close)
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", role.URL)
	ofRole := openS3(t, chain)
	away.Store(true)
	err := ofRole.Put(t.Context(), "k", nil)
	wantError(t, "Put without the server of the keys", err, storage.ErrUnavailable)
	if text := err.Error(); strings.Count(text, "unavailable") != 1 || !strings.Contains(text, "read the keys again") {
		t.Errorf("Put without the server of the keys: %s", text)
	}
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "")

	shared := filepath.Join(t.TempDir(), "credentials")
	must(t, os.WriteFile(shared, fmt.Appendf(nil, "[worker]\naws_access_key_id = %s\naws_secret_access_key = %s\n",
		server.AccessKey, server.SecretKey), 0o600))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", shared)
	wantOpenError(t, chain, storage.ErrAccess, "no credentials")
	t.Setenv("AWS_PROFILE", "worker")
	store := openS3(t, chain)
	must(t, store.Put(t.Context(), "k", nil))
	must(t, os.Rename(shared, shared+".old"))
	wantError(t, "Put while the keys are away", store.Put(t.Context(), "k", nil), storage.ErrUnavailable)
	must(t, os.Rename(shared+".old", shared))
	must(t, store.Put(t.Context(), "k", nil))

	t.Setenv("MINIO_ACCESS_KEY", "WRONG")
	t.Setenv("MINIO_SECRET_KEY", "wrong")
	wantOpenError(t, chain, storage.ErrAccess, "access key")
	t.Setenv("AWS_ACCESS_KEY_ID", server.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", server.SecretKey)
	openS3(t, chain)

	chain.Endpoint, chain.Region = "", ""
	t.Setenv("AWS_ENDPOINT_URL", closedEndpoint(t))
	t.Setenv("AWS_ENDPOINT_URL_S3", server.Endpoint)
	t.Setenv("AWS_REGION", "us-east-1")
	openS3(t, chain)

	t.Setenv("AWS_ACCESS_KEY_ID", "WRONG")
	openS3(t, explicit)
}

// A bucket of another region comes with its region and the setting of the command line.
func TestOpenS3OtherRegion(t *testing.T) {
	t.Parallel()
	p := startProxied(t)
	for code, status := range map[string]int{"AuthorizationHeaderMalformed": http.StatusBadRequest, "PermanentRedirect": http.StatusMovedPermanently} {
		p.set(func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
			w.Header().Set("x-amz-bucket-region", "eu-west-1")
			answer(status, code)(w, r, forward)
		})
		wantOpenError(t, p.config, nil, `region "eu-west-1"`, "$AWS_REGION")
	}
	p.set(answer(http.StatusTemporaryRedirect, "TemporaryRedirect"))
	wantOpenError(t, p.config, storage.ErrUnavailable, "$AWS_ENDPOINT_URL", "$AWS_REGION")
}

// A probe that cannot be deleted is an error that names it.
func TestOpenS3CannotRemoveItsProbe(t *testing.T) {
	t.Parallel()
	p := startProxied(t)
	p.set(func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if r.Method == http.MethodDelete {
			answer(http.StatusForbidden, "AccessDenied")(w, r, forward)
			return
		}
		forward.ServeHTTP(w, r)
	})
	wantOpenError(t, p.config, storage.ErrReadOnly, "delete probe ")
}

// The authorities of a file are used beside those of the system.
func TestAuthoritiesOfTheSystem(t *testing.T) {
	t.Parallel()
	system, err := x509.SystemCertPool()
	if err != nil || system.Equal(x509.NewCertPool()) {
		t.Skipf("the system has no authorities: %v", err)
	}
	file := newAuthority(t).file
	pem, err := os.ReadFile(file)
	must(t, err)
	system.AppendCertsFromPEM(pem)
	got, err := storage.Authorities(file)
	must(t, err)
	if !got.Equal(system) {
		t.Error("the pool lacks authorities of the system, or of the file")
	}
}

// TestOpenS3Busy: opening outlasts a server that answers that it is busy, also where the request was executed.
func TestOpenS3Busy(t *testing.T) {
	t.Parallel()
	p := startProxied(t)
	for _, code := range []string{"SlowDown", "ConditionalRequestConflict"} {
		status, method := http.StatusServiceUnavailable, http.MethodGet
		if code != "SlowDown" {
			status, method = http.StatusConflict, http.MethodPut
		}
		h, count := first(2, method, answer(status, code))
		p.set(h)
		openS3(t, retryNow(p.config, nil))
		if count.Load() < 3 {
			t.Errorf("%s: %d requests", code, count.Load())
		}
	}
	p.set(answer(http.StatusServiceUnavailable, "SlowDown"))
	_, err := storage.OpenS3(t.Context(), retryNow(p.config, nil))
	wantError(t, "OpenS3", err, storage.ErrUnavailable)
}
