package testbed

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"ddiff/storage/s3test"
)

// S3 is a real S3 server: versitygw with its directory backend, which stores objects as files.
type S3 struct {
	// Server is its process.
	Server *Process
	// Address is host:port of the listener.
	Address string
	// Root has a directory per bucket, with a file per object.
	Root string
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

// StartS3 starts a server with its files in dir and waits until it answers.
func StartS3(ctx context.Context, dir string) (*S3, error) {
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
	if s.Address, err = FreeAddress(ctx); err != nil {
		return nil, err
	}
	env := []string{"ROOT_ACCESS_KEY_ID=" + s.Admin.Access, "ROOT_SECRET_ACCESS_KEY=" + s.Admin.Secret}
	s.Server = NewProcess(dir, "versitygw", env, path,
		"--port", s.Address, "--health", "/health", "--quiet", "--iam-dir", accounts, "posix", s.Root)
	if err := s.Server.Start(); err != nil {
		return nil, err
	}
	if err := s.Ready(ctx); err != nil {
		s.Server.Kill()
		return nil, err
	}
	return s, nil
}

// Ready waits until the server answers.
func (s *S3) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Address+"/health", nil)
		if err != nil {
			return err
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
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
	return "s3://" + bucket + "?path_style=true&region=us-east-1&endpoint=" + url.QueryEscape("http://"+proxy)
}
