package s3test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ddiff/storage"
)

// Options configures a server. The zero value is a plain http server.
type Options struct {
	// CertFile and KeyFile are PEM files for https.
	CertFile, KeyFile string
	// Domain enables requests to bucket.domain.
	Domain string
}

// Server is a running server.
type Server struct {
	// Endpoint is the server's URL, on a random port of 127.0.0.1.
	Endpoint string
	// AccessKey and SecretKey are random credentials with all permissions.
	AccessKey, SecretKey string
	// Root contains one directory per bucket with one file per object.
	Root string

	command *exec.Cmd
	exited  chan struct{}
	output  bytes.Buffer // of the process; complete when it has exited
	stop    sync.Once
}

const startTries = 5

// Start runs a server until the end of the test.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	program, err := Binary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	var failure error
	for range startTries {
		s := &Server{AccessKey: rand.Text(), SecretKey: rand.Text(), Root: root}
		if failure = s.run(t.Context(), program, options); failure == nil {
			t.Cleanup(s.Stop)
			return s
		}
		s.Stop()
	}
	t.Fatalf("start %s: %v", program, failure)
	return nil
}

func (s *Server) run(ctx context.Context, program string, options Options) error {
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	arguments := []string{"--port", address, "--health", "/health", "--quiet"}
	s.Endpoint = "http://" + address
	if options.CertFile != "" {
		arguments = append(arguments, "--cert", options.CertFile, "--key", options.KeyFile)
		s.Endpoint = "https://" + address
	}
	if options.Domain != "" {
		arguments = append(arguments, "--virtual-domain", options.Domain)
	}
	s.command = exec.CommandContext(ctx, program, append(arguments, "posix", s.Root)...)
	s.command.Env = append(os.Environ(), "ROOT_ACCESS_KEY_ID="+s.AccessKey, "ROOT_SECRET_ACCESS_KEY="+s.SecretKey)
	s.command.Stdout, s.command.Stderr = &s.output, &s.output
	s.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := s.command.Start(); err != nil {
		return err
	}
	s.exited = make(chan struct{})
	go func() {
		defer close(s.exited)
		s.command.Wait() //nolint:errcheck // Stop kills it
	}()
	return s.awaitHealth(ctx)
}

// awaitHealth polls the server for at most 20 seconds until it answers or exits.
func (s *Server) awaitHealth(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	transport := &http.Transport{
		DisableKeepAlives: true,
		// Some tests use invalid certificates, and the request contains no secrets.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
	client := &http.Client{Transport: transport}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint+"/health", nil)
		if err != nil {
			return err
		}
		if response, err := client.Do(request); err == nil {
			response.Body.Close() // only the status matters
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-again.C:
		case <-s.exited:
			return fmt.Errorf("server exited: %s", s.output.Bytes())
		case <-ctx.Done():
			s.Stop()
			return fmt.Errorf("no answer from %s: %w: %s", s.Endpoint, ctx.Err(), s.output.Bytes())
		}
	}
}

func freeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// Stop kills the server and its child processes and waits for their end. It is idempotent.
func (s *Server) Stop() {
	s.stop.Do(func() {
		if s.exited == nil {
			return
		}
		syscall.Kill(-s.command.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may have exited
		<-s.exited
	})
}

// Bucket creates a bucket and returns its name.
func (s *Server) Bucket(t testing.TB) string {
	t.Helper()
	name := "test-" + strings.ToLower(rand.Text())
	if err := os.Mkdir(filepath.Join(s.Root, name), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// Config returns the configuration of a store in a bucket of the server.
func (s *Server) Config(bucket string) storage.S3Config {
	return storage.S3Config{
		Endpoint: s.Endpoint, Bucket: bucket, Region: "us-east-1",
		AccessKey: s.AccessKey, SecretKey: s.SecretKey,
	}
}
