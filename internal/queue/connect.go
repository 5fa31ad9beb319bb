package queue

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ddiff/internal/redact"
	"ddiff/internal/regular"
	"ddiff/internal/retry"
)

const (
	// MinServerVersion is the oldest supported server. Older servers cannot pause consumers or expire the board's
	// deletion markers.
	MinServerVersion = "2.11.0"
	// minPayload is the smallest permitted max_payload of a server, in bytes: that of the largest record with its headers.
	minPayload = MaxRecordBytes + 16<<10
	// dialTimeout limits one attempt to connect to one server.
	dialTimeout = 5 * time.Second
	// pingInterval is the time between pings; two unanswered pings end a connection.
	pingInterval = 10 * time.Second
	// connectPause is the pause between two rounds through the list of servers.
	connectPause = 500 * time.Millisecond
)

// Conn is a connection to the queue servers, for packages that pass it on without importing the NATS client.
type Conn = nats.Conn

// ConnectConfig describes the connection to the queue servers.
type ConnectConfig struct {
	// URL lists the addresses of one or more servers of a cluster, separated by commas: nats://host:4222 or
	// tls://host:4222. It may contain a user and a password; errors and logs never show them.
	URL string
	// Name identifies this client in the server's logs.
	Name string
	// Role is the prefix of the client's inboxes, "_INBOX_<role>", so that a server can restrict each role to its own
	// inboxes. Letters, digits, "-" and "_". Default: "_INBOX".
	Role string
	// Credentials is a .creds file, NKeySeed a file with the seed of an NKey. At most one may be set. Default: the user
	// in URL, if any.
	Credentials, NKeySeed string
	// CAFile is a PEM file with the authorities of the servers' certificates. Default: the system's authorities.
	CAFile string
	// CertFile and KeyFile are the client's certificate and key in PEM, read again for every connection. Default: none.
	CertFile, KeyFile string
	// Wait limits the retries while no server is reachable and ready. Default: every server is tried once.
	Wait time.Duration
	// Logger receives lost connections and refusals of the server. Default: no log.
	Logger *slog.Logger
}

// Validate reports the first invalid field. The error wraps ErrConfig.
func (c ConnectConfig) Validate() error {
	if _, err := addresses(c.URL); err != nil {
		return err
	}
	switch {
	case Token(c.Role) != c.Role:
		return fmt.Errorf("%w: Role %q may contain only letters, digits, - and _", ErrConfig, c.Role)
	case c.Credentials != "" && c.NKeySeed != "":
		return fmt.Errorf("%w: Credentials and NKeySeed are both set; set one", ErrConfig)
	case (c.CertFile == "") != (c.KeyFile == ""):
		return fmt.Errorf("%w: set CertFile and KeyFile together; one of them is empty", ErrConfig)
	case c.Wait < 0:
		return fmt.Errorf("%w: Wait is %v, it must not be negative", ErrConfig, c.Wait)
	}
	return nil
}

// Connect connects to one of the servers and checks its version, permissions and JetStream. Errors wrap one of the
// package's sentinels. Connect retries until cfg.Wait is over while no server is reachable or ready; other errors
// return at once. A connection that is lost later is restored without a time limit, to any server of the cluster. The
// caller closes the connection.
func Connect(ctx context.Context, cfg ConnectConfig) (*nats.Conn, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("connect to queue: %w", err)
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	options, err := cfg.options()
	if err != nil {
		return nil, fmt.Errorf("connect to queue: %w", err)
	}
	for begin := time.Now(); ; {
		nc, err := connectOnce(ctx, cfg.URL, options)
		if err == nil {
			return nc, nil
		}
		again := errors.Is(err, ErrUnreachable) || errors.Is(err, ErrUnavailable)
		if !again || time.Since(begin)+connectPause > cfg.Wait || retry.Sleep(ctx, connectPause) != nil {
			if ctx.Err() != nil {
				err = fmt.Errorf("%w: %w", ctx.Err(), err)
			}
			return nil, fmt.Errorf("connect to queue at %s: %w", redacted(cfg.URL), err)
		}
	}
}

func connectOnce(ctx context.Context, urls string, options []nats.Option) (*nats.Conn, error) {
	list, err := addresses(urls)
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect(strings.Join(list, ","), options...)
	if err != nil && len(list) > 1 {
		// The client reports only the last server's error, and none when that server is down.
		nc, err = connectEach(list, options)
	}
	if err != nil {
		return nil, connectError(err)
	}
	if err := check(ctx, nc); err != nil {
		nc.Close()
		return nil, err
	}
	return nc, nil
}

// connectEach tries one server after the other and returns the most specific error.
func connectEach(list []string, options []nats.Option) (*nats.Conn, error) {
	var specific error
	for i := range list {
		// The other servers stay on the list for later reconnects.
		order := append(append([]string{list[i]}, list[i+1:]...), list[:i]...)
		nc, err := nats.Connect(list[i], append(options, nats.DontRandomize())...)
		if err == nil {
			nc.Close()
			return nats.Connect(strings.Join(order, ","), append(options, nats.DontRandomize())...)
		}
		if specific == nil || errors.Is(connectError(specific), ErrUnreachable) {
			specific = err
		}
	}
	return nil, specific
}

func (c ConnectConfig) options() ([]nats.Option, error) {
	options := []nats.Option{
		nats.Name(c.Name), nats.Timeout(dialTimeout), nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(2),
		nats.MaxReconnects(-1), nats.ReconnectWait(connectPause), nats.ReconnectJitter(connectPause, connectPause),
		// Credentials may change while the connection is down.
		nats.IgnoreAuthErrorAbort(),
		// A request without a connection fails at once and is retried: a buffered request could be sent
		// long after the deadline of its caller.
		nats.ReconnectBufSize(-1),
		nats.DisconnectErrHandler(func(nc *nats.Conn, err error) {
			if !nc.IsClosed() {
				c.Logger.Warn("disconnected from the queue server", "reason", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			c.Logger.Info("reconnected to the queue server", "server", nc.ConnectedUrlRedacted())
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			c.Logger.Warn("queue connection", "reason", err)
		}),
	}
	if c.Role != "" {
		options = append(options, nats.CustomInboxPrefix("_INBOX_"+c.Role))
	}
	if c.Credentials != "" {
		if _, err := regular.Read(c.Credentials, regular.MaxConfigBytes); err != nil {
			return nil, fmt.Errorf("%w: read credentials: %w", ErrConfig, err)
		}
		option := nats.UserCredentials(c.Credentials)
		if err := checkCredentials(option); err != nil {
			return nil, fmt.Errorf("%w: credentials %s have no user and key: %w; write the file again, for example with nsc generate creds",
				ErrConfig, c.Credentials, err)
		}
		options = append(options, option)
	}
	if c.NKeySeed != "" {
		if _, err := regular.Read(c.NKeySeed, regular.MaxConfigBytes); err != nil {
			return nil, fmt.Errorf("%w: read NKey seed: %w", ErrConfig, err)
		}
		option, err := nats.NkeyOptionFromSeed(c.NKeySeed)
		if err != nil {
			return nil, fmt.Errorf("%w: read NKey seed %s: %w", ErrConfig, c.NKeySeed, err)
		}
		options = append(options, option)
	}
	config, err := c.tls()
	if err != nil {
		return nil, err
	}
	if config != nil {
		options = append(options, nats.Secure(config))
	}
	return options, nil
}

// checkCredentials reads the user and the key of a credentials file, which the client otherwise reads for each connection.
func checkCredentials(option nats.Option) error {
	var o nats.Options
	if err := option(&o); err != nil {
		return err
	}
	if _, err := o.UserJWT(); err != nil {
		return err
	}
	_, err := o.SignatureCB([]byte("nonce"))
	return err
}

func (c ConnectConfig) tls() (*tls.Config, error) {
	if c.CAFile == "" && c.CertFile == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		data, err := regular.Read(c.CAFile, regular.MaxConfigBytes)
		if err != nil {
			return nil, fmt.Errorf("%w: read CAFile: %w", ErrConfig, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("%w: CAFile %s contains no PEM certificate", ErrConfig, c.CAFile)
		}
	}
	if c.CertFile != "" {
		if _, err := c.certificate(); err != nil {
			return nil, err
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.certificate() }
	}
	return config, nil
}

func (c ConnectConfig) certificate() (*tls.Certificate, error) {
	pair, err := regular.KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("%w: read CertFile and KeyFile: %w", ErrConfig, err)
	}
	if end := pair.Leaf.NotAfter; time.Now().After(end) {
		return nil, fmt.Errorf("%w: the certificate in %s expired on %s", ErrCertificate, c.CertFile, end.UTC().Format(time.DateTime))
	}
	return pair, nil
}

// addresses splits and checks the addresses. Its errors do not quote them: a malformed address may contain a password.
func addresses(urls string) ([]string, error) {
	var list []string
	for i, address := range strings.Split(urls, ",") {
		address = strings.TrimSpace(address)
		if !strings.Contains(address, "://") {
			address = "nats://" + address
		}
		u, err := url.Parse(address)
		if err != nil || u.Hostname() == "" || (u.Scheme != "nats" && u.Scheme != "tls") || strings.Trim(u.Path, "/") != "" ||
			strings.ContainsAny(address, "?#") { // before the "@" of a password they make the user a host, and part of the password its port
			return nil, fmt.Errorf("%w: address %d of URL is not of the form nats://host:4222 or tls://user:password@host:4222"+
				" (write special characters of a password as %%XX)", ErrConfig, i+1)
		}
		if port := u.Port(); port != "" {
			if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
				return nil, fmt.Errorf("%w: address %d of URL has the port %.20s, want 1 to 65535", ErrConfig, i+1, port)
			}
		}
		list = append(list, address)
	}
	return list, nil
}

// redacted returns urls without users and passwords, for display.
func redacted(urls string) string {
	list, err := addresses(urls)
	if err != nil {
		return "(not an address)"
	}
	for i, address := range list {
		list[i] = redact.Address(address)
	}
	return strings.Join(list, ",")
}

func check(ctx context.Context, nc *nats.Conn) error {
	if version := nc.ConnectedServerVersion(); olderThan(version, MinServerVersion) {
		return fmt.Errorf("%w: it is version %s; pausing consumers needs at least %s", ErrServerVersion, version, MinServerVersion)
	}
	if limit := nc.MaxPayload(); limit < minPayload {
		return fmt.Errorf("%w: its max_payload is %d bytes; raise it to %d or more in the server's configuration", ErrLimits, limit, minPayload)
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
		return notPermitted(nc.LastError())
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
