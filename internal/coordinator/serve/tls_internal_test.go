package serve

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"iter"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/internal/report/reporttest"
)

// noEvents is a backend of which only the stream of events is read.
type noEvents struct{ Backend }

// Watch implements Backend.
func (noEvents) Watch(context.Context) iter.Seq2[api.Event, error] {
	return func(func(api.Event, error) bool) {}
}

// issue writes a certificate for localhost with a serial number, and its key.
func issue(t *testing.T, files TLS, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	reporttest.Must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	reporttest.Must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	reporttest.Must(t, err)
	reporttest.Must(t, os.WriteFile(files.Cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600))
	reporttest.Must(t, os.WriteFile(files.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}

// TestRenewedCertificate: new connections get a renewed certificate, and the last one while its file cannot be read.
func TestRenewedCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := TLS{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	issue(t, files, 1)
	s, err := New(Config{Backend: noEvents{}, Kind: "output", Secret: "secret", Logger: slog.New(slog.DiscardHandler)})
	reporttest.Must(t, err)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	reporttest.Must(t, err)
	go func() { _ = s.Serve(t.Context(), l, files) }() // its error is that of the context
	served := func() int64 {
		t.Helper()
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the serial number tells
		c, err := dialer.DialContext(t.Context(), "tcp", l.Addr().String())
		reporttest.Must(t, err)
		defer c.Close()
		return c.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if n := served(); n != 1 {
		t.Errorf("certificate %d, want 1", n)
	}
	issue(t, files, 2)
	if n := served(); n != 2 {
		t.Errorf("certificate %d after its renewal, want 2", n)
	}
	reporttest.Must(t, os.Remove(files.Key))
	if n := served(); n != 2 {
		t.Errorf("certificate %d without the key's file, want 2", n)
	}
}
