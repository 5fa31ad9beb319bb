package queue

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"ddiff/internal/retry"
)

const (
	// MinServerVersion is the oldest server that works: consumers can be paused, and the
	// board's marks of deletion expire, since then.
	MinServerVersion = "2.11.0"
	// dialTimeout bounds one attempt to connect to one server.
	dialTimeout = 5 * time.Second
	// pingInterval and twice as many lost pings are how a dead connection is noticed.
	pingInterval = 10 * time.Second
	// connectPause is between two rounds through the servers.
	connectPause = 500 * time.Millisecond
)

// Conn is a connection to the queue servers, for packages that pass it on and do not import
// the client.
type Conn = nats.Conn

// ConnectConfig says how to reach the queue servers.
type ConnectConfig struct {
	// URL has the addresses of one or more servers of a cluster, separated by commas:
	// nats://host:4222 or tls://host:4222. It may carry a user and a password, which no
	// error and no log shows.
	URL string
	// Name is what the server calls this client in its logs.
	Name string
	// Role is the first part of the client's inboxes, "_INBOX_<role>": a server can permit
	// each role its own ones only. Letters, digits, "-" and "_". Default: "_INBOX".
	Role string
	// Credentials is a .creds file, and NKeySeed a file with the seed of an NKey. At most
	// one of them. Default: the user of the URL, or none.
	Credentials, NKeySeed string
	// CAFile holds the certificates that sign the servers', in PEM. Default: the system's.
	CAFile string
	// CertFile and KeyFile are the client's certificate and its key, in PEM. They are read
	// anew for every connection. Default: none.
	CertFile, KeyFile string
	// Wait is how long to go on while no server can be reached or is ready. Default: every
	// server is tried once.
	Wait time.Duration
	// Logger is told of lost connections and of what the server refuses. Default: nothing
	// is logged.
	Logger *slog.Logger
}

// Validate reports the first field that cannot be used. The error wraps ErrConfig.
func (c ConnectConfig) Validate() error {
	if _, err := addresses(c.URL); err != nil {
		return err
	}
	switch {
	case Token(c.Role) != c.Role:
		return fmt.Errorf("%w: Role %q has other characters than letters, digits, - and _", ErrConfig, c.Role)
	case c.Credentials != "" && c.NKeySeed != "":
		return fmt.Errorf("%w: Credentials and NKeySeed are both set", ErrConfig)
	case (c.CertFile == "") != (c.KeyFile == ""):
		return fmt.Errorf("%w: CertFile and KeyFile belong together, one of them is empty", ErrConfig)
	case c.Wait < 0:
		return fmt.Errorf("%w: Wait is %v, it must not be negative", ErrConfig, c.Wait)
	}
	return nil
}

// Connect connects to one of the servers and checks that it can do what a queue needs. What
// stands in the way is one of the sentinels. Only a server that cannot be reached, or is not
// ready, is tried again until cfg.Wait is over. Later the connection is made again for as
// long as it takes, with any server of the cluster. The caller closes it.
func Connect(ctx context.Context, cfg ConnectConfig) (*nats.Conn, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("connect to queue: %w", err)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
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
			return nil, fmt.Errorf("connect to queue at %s: %w", Redacted(cfg.URL), err)
		}
	}
}

// connectOnce tries every server once.
func connectOnce(ctx context.Context, urls string, options []nats.Option) (*nats.Conn, error) {
	list, err := addresses(urls)
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect(strings.Join(list, ","), options...)
	if err != nil && len(list) > 1 {
		// The client tells of the last server only, and nothing when that one is down.
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

// connectEach tries one server after the other, for the most telling error.
func connectEach(list []string, options []nats.Option) (*nats.Conn, error) {
	var telling error
	for i := range list {
		// The others stay known, for the time after.
		order := append(append([]string{list[i]}, list[i+1:]...), list[:i]...)
		nc, err := nats.Connect(list[i], append(options, nats.DontRandomize())...)
		if err == nil {
			nc.Close()
			return nats.Connect(strings.Join(order, ","), append(options, nats.DontRandomize())...)
		}
		if telling == nil || errors.Is(connectError(telling), ErrUnreachable) {
			telling = err
		}
	}
	return nil, telling
}

// options turns the settings into those of the client.
func (c ConnectConfig) options() ([]nats.Option, error) {
	options := []nats.Option{
		nats.Name(c.Name), nats.Timeout(dialTimeout), nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(2),
		nats.MaxReconnects(-1), nats.ReconnectWait(connectPause), nats.ReconnectJitter(connectPause, connectPause),
		// Credentials may be renewed while the connection is down.
		nats.IgnoreAuthErrorAbort(),
		// What is sent without a connection fails at once and is tried again: it must not
		// be sent much later, when it may not be meant any more.
		nats.ReconnectBufSize(-1),
		nats.DisconnectErrHandler(func(nc *nats.Conn, err error) {
			if !nc.IsClosed() {
				c.Logger.Warn("lost the queue server", "reason", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			c.Logger.Info("found the queue server again", "server", nc.ConnectedUrlRedacted())
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			c.Logger.Warn("queue connection", "reason", err)
		}),
	}
	if c.Role != "" {
		options = append(options, nats.CustomInboxPrefix("_INBOX_"+c.Role))
	}
	if c.Credentials != "" {
		if _, err := os.ReadFile(c.Credentials); err != nil {
			return nil, fmt.Errorf("%w: read credentials: %w", ErrConfig, err)
		}
		options = append(options, nats.UserCredentials(c.Credentials))
	}
	if c.NKeySeed != "" {
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

// tls is the configuration for secure connections, or nil when nothing is set.
func (c ConnectConfig) tls() (*tls.Config, error) {
	if c.CAFile == "" && c.CertFile == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		data, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("%w: read CAFile: %w", ErrConfig, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("%w: CAFile %s holds no certificate in PEM", ErrConfig, c.CAFile)
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

// certificate reads the client's certificate.
func (c ConnectConfig) certificate() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("%w: read CertFile and KeyFile: %w", ErrConfig, err)
	}
	if end := pair.Leaf.NotAfter; time.Now().After(end) {
		return nil, fmt.Errorf("%w: the certificate in %s expired on %s", ErrCertificate, c.CertFile, end.UTC().Format(time.DateTime))
	}
	return &pair, nil
}

// addresses splits and checks the addresses. Its errors do not show them, since they may hold
// a password in a place where it cannot be told from the rest.
func addresses(urls string) ([]string, error) {
	var list []string
	for i, address := range strings.Split(urls, ",") {
		address = strings.TrimSpace(address)
		if !strings.Contains(address, "://") {
			address = "nats://" + address
		}
		u, err := url.Parse(address)
		if err != nil || u.Hostname() == "" || (u.Scheme != "nats" && u.Scheme != "tls") || strings.Trim(u.Path, "/") != "" {
			return nil, fmt.Errorf("%w: address %d of URL is none like nats://host:4222 or tls://user:password@host:4222"+
				" (a password with special characters is written with %%XX)", ErrConfig, i+1)
		}
		list = append(list, address)
	}
	return list, nil
}

// Redacted is urls without users and passwords, for people.
func Redacted(urls string) string {
	list, err := addresses(urls)
	if err != nil {
		return "(not an address)"
	}
	for i, address := range list {
		u, err := url.Parse(address)
		if err != nil {
			return "(not an address)"
		}
		u.User = nil
		list[i] = u.String()
	}
	return strings.Join(list, ",")
}
