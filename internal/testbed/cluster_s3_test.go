package testbed

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"ddiff/internal/s3test"
	"ddiff/storage"
)

// S3 is a real S3 server: versitygw with its directory backend, which stores objects as files.
type S3 struct {
	// Server is its process.
	Server *Process
	// Address is host:port of the listener.
	Address string
	// Root has a directory per bucket, with a file per object.
	Root string
	// Authority signs the server's certificate; nil without TLS.
	Authority *Authority
	// Client is the certificate of the programs, for a proxy that requires one.
	Client Pair
	// Admin has every permission.
	Admin Keys
}

// Keys are S3 credentials.
type Keys struct{ Access, Secret string }

// Environment returns the variables that pass the keys to a program.
func (k Keys) Environment() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + k.Access, "AWS_SECRET_ACCESS_KEY=" + k.Secret, "AWS_REGION=us-east-1"}
}

// newKeys generates random keys.
func newKeys() Keys { return Keys{rand.Text(), rand.Text()} }

// StartS3 starts a server with its files in dir and waits until it answers. host is its address, by default 127.0.0.1.
func StartS3(ctx context.Context, dir, host string, secure bool) (*S3, error) {
	path, err := s3test.Binary(ctx)
	if err != nil {
		return nil, err
	}
	s := &S3{Root: filepath.Join(dir, "buckets"), Admin: newKeys()}
	accounts := filepath.Join(dir, "accounts")
	for _, d := range []string{s.Root, accounts} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, fmt.Errorf("start versitygw: %w", err)
		}
	}
	if s.Address, err = freeAddress(ctx, host); err != nil {
		return nil, err
	}
	args := []string{"--port", s.Address, "--health", "/health", "--quiet", "--iam-dir", accounts}
	if secure {
		if s.Authority, err = NewAuthority(dir); err != nil {
			return nil, err
		}
		pair, err := s.Authority.Issue("s3", time.Now().Add(time.Hour))
		if err != nil {
			return nil, err
		}
		args = append(args, "--cert", pair.Cert, "--key", pair.Key)
	}
	env := []string{"ROOT_ACCESS_KEY_ID=" + s.Admin.Access, "ROOT_SECRET_ACCESS_KEY=" + s.Admin.Secret}
	s.Server = NewProcess(dir, "versitygw", env, path, append(args, "posix", s.Root)...)
	if err := s.Server.Start(); err != nil {
		return nil, err
	}
	if err := s.Ready(ctx); err != nil {
		s.Server.Kill()
		return nil, err
	}
	return s, nil
}

// endpoint returns the address of the server as a URL.
func (s *S3) endpoint(address string) string {
	if s.Authority != nil {
		return "https://" + address
	}
	return "http://" + address
}

// caFile names the authority of the server, or nothing.
func (s *S3) caFile() string {
	if s.Authority == nil {
		return ""
	}
	return s.Authority.File
}

// transport trusts the authority of the server.
func (s *S3) transport() (*http.Transport, error) {
	if s.Authority == nil {
		return &http.Transport{}, nil
	}
	pool, err := storage.Authorities(s.Authority.File)
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}, err
}

// Ready waits until the server answers.
func (s *S3) Ready(ctx context.Context) error {
	transport, err := s.transport()
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.endpoint(s.Address)+"/health", nil)
		if err != nil {
			return err
		}
		if res, err := client.Do(req); err == nil {
			res.Body.Close() // only the status counts
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-s.Server.Exited():
			return fmt.Errorf("versitygw has ended with code %d:\n%s", s.Server.Code(), tail(s.Server.Log()))
		case <-ctx.Done():
			return fmt.Errorf("wait for versitygw: %w:\n%s", ctx.Err(), tail(s.Server.Log()))
		}
	}
}

// Bucket creates a bucket.
func (s *S3) Bucket(name string) error {
	if err := os.Mkdir(filepath.Join(s.Root, name), 0o755); err != nil {
		return fmt.Errorf("create bucket: %w", err)
	}
	return nil
}

// Store returns the address of a bucket for programs, at the server or at a proxy.
func (s *S3) Store(bucket, proxy string) string {
	if proxy == "" {
		proxy = s.Address
	}
	return "s3://" + bucket + "?path_style=true&region=us-east-1&endpoint=" + url.QueryEscape(s.endpoint(proxy))
}
