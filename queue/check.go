package queue

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func check(ctx context.Context, nc *nats.Conn) error {
	if version := nc.ConnectedServerVersion(); olderThan(version, MinServerVersion) {
		return fmt.Errorf("%w: it is version %s; pausing consumers needs at least %s", ErrServerVersion, version, MinServerVersion)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	_, err = js.AccountInfo(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("%w: start it with --jetstream, or with a jetstream block in its configuration", ErrNoJetStream)
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("%w for this account: enable it in the account's configuration", ErrNoJetStream)
	case errors.Is(nc.LastError(), nats.ErrPermissionViolation):
		return fmt.Errorf("%w: %w", ErrAccess, nc.LastError())
	case transient(err):
		return fmt.Errorf("%w: JetStream has no leader yet: %w", ErrUnavailable, err)
	}
	return err
}

// olderThan compares versions such as 2.11.3 or 2.12.0-RC.1. An unreadable version is not older.
func olderThan(version, than string) bool {
	var parts [2][3]int
	for i, text := range []string{version, than} {
		text, _, _ = strings.Cut(strings.TrimPrefix(text, "v"), "-")
		p := &parts[i]
		if _, err := fmt.Sscanf(text, "%d.%d.%d\n", &p[0], &p[1], &p[2]); err != nil {
			return false
		}
	}
	return slices.Compare(parts[0][:], parts[1][:]) < 0
}

// connectError explains in one line why a connection failed.
func connectError(err error) error {
	var (
		invalid   x509.CertificateInvalidError
		unknown   x509.UnknownAuthorityError
		host      x509.HostnameError
		record    tls.RecordHeaderError
		operation *net.OpError
	)
	switch {
	case errors.Is(err, ErrCertificate), errors.Is(err, ErrConfig):
		return err
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		now, cert := time.Now(), invalid.Cert
		if now.Before(cert.NotBefore) {
			return fmt.Errorf("%w: the server's certificate is not valid before %s", ErrCertificate, cert.NotBefore.UTC().Format(time.DateTime))
		}
		return fmt.Errorf("%w: the server's certificate expired on %s", ErrCertificate, cert.NotAfter.UTC().Format(time.DateTime))
	case errors.As(err, &unknown):
		return fmt.Errorf("%w: the server's certificate is signed by an untrusted authority; set its CA file: %w", ErrCertificate, err)
	case errors.As(err, &host), errors.As(err, &invalid):
		return fmt.Errorf("%w: %w", ErrCertificate, err)
	case errors.As(err, &operation) && operation.Op == "remote error":
		return fmt.Errorf("%w: the server refuses the client's certificate: %w", ErrCertificate, err)
	case errors.Is(err, nats.ErrSecureConnWanted):
		return fmt.Errorf("%w: the server offers no TLS; use nats:// in its address and no certificates", ErrCertificate)
	case errors.As(err, &record):
		return fmt.Errorf("%w: %w", ErrCertificate, err)
	case errors.Is(err, nats.ErrTLS): // its alert may be lost
		return fmt.Errorf("%w: the server may require another certificate of the client: %w", ErrCertificate, err)
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked),
		errors.Is(err, nats.ErrAccountAuthExpired), errors.Is(err, nats.ErrNkeysNotSupported):
		return fmt.Errorf("%w: check user, password or credentials file: %w", ErrAccess, err)
	}
	return fmt.Errorf("%w: %w; check that a NATS server runs at this address", ErrUnreachable, err)
}
