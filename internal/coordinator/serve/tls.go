package serve

import (
	"crypto/tls"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"ddiff/internal/regular"
)

// TLS names the files of a certificate and its key in PEM. Empty: no encryption.
type TLS struct{ Cert, Key string }

// config reads the files, and again for each connection: a certificate is renewed while the server runs. While they cannot be read, the last
// certificate is used.
func (t TLS) config(log *slog.Logger) (*tls.Config, error) {
	first, err := regular.KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, err
	}
	var last atomic.Pointer[tls.Certificate]
	last.Store(first)
	failures := rate.Sometimes{First: 1, Interval: time.Minute}
	return &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := regular.KeyPair(t.Cert, t.Key)
		if err == nil {
			last.Store(pair)
		} else {
			failures.Do(func() { log.Warn("cannot read the certificate of the API again; the last one is used", "reason", err) })
		}
		return last.Load(), nil
	}}, nil
}
