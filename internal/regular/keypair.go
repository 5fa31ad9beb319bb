package regular

import (
	"crypto/tls"
	"errors"
)

// KeyPair reads a certificate with its key, PEM files of at most MaxConfigBytes. A caller that reads them for each connection follows
// their renewal.
func KeyPair(certFile, keyFile string) (*tls.Certificate, error) {
	cert, certErr := Read(certFile, MaxConfigBytes)
	key, keyErr := Read(keyFile, MaxConfigBytes)
	if err := errors.Join(certErr, keyErr); err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	return &pair, err
}
