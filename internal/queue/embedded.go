package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// EmbeddedConfig describes a server inside the process.
type EmbeddedConfig struct {
	// Dir is the directory of the streams; StartEmbedded creates it. The caller ensures that one server at a time uses it.
	Dir string
	// Logger receives the server's log: notices as debug, warnings and errors as warn. Default: no log.
	Logger *slog.Logger
}

// Embedded is a running NATS server with JetStream in the process. It opens no port and handles no signals; only Connect reaches it.
type Embedded struct {
	server embeddedServer
	log    *serverLog

	mu      sync.Mutex
	stopped bool
	conns   []*nats.Conn
}

// embeddedServer is a server of NATS. A field of its type would make every package that uses Embedded compile its generic functions again.
type embeddedServer interface {
	nats.InProcessConnProvider
	Shutdown()
	WaitForShutdown()
}

// StartEmbedded starts a server. It returns when the server accepts connections and has read the streams in Dir. ctx bounds the start alone;
// the server runs until Stop, which the caller must call.
func StartEmbedded(ctx context.Context, cfg EmbeddedConfig) (*Embedded, error) {
	e := &Embedded{log: &serverLog{logger: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))}}
	if err := e.start(ctx, cfg.Dir); err != nil {
		return nil, fmt.Errorf("start queue server in %q: %w", cfg.Dir, err)
	}
	return e, nil
}

func (e *Embedded) start(ctx context.Context, dir string) error {
	if dir == "" {
		return fmt.Errorf("%w: Dir is empty", ErrConfig)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	s, err := server.NewServer(&server.Options{
		ServerName:             "ddiff",
		DontListen:             true,
		NoSigs:                 true,
		JetStream:              true,
		StoreDir:               dir,
		DisableJetStreamBanner: true,
	})
	if err != nil {
		return err
	}
	e.server = s
	s.SetLoggerV2(e.log, false, false, false)
	s.Start()
	for ready := false; !ready; {
		ready = s.ReadyForConnections(100 * time.Millisecond)
		if err := errors.Join(e.log.failure(), ctx.Err()); err != nil {
			e.Stop()
			return err
		}
	}
	return nil
}

// Connect opens a connection to the server. The caller may close it; Stop also closes it. ErrClosed: the server does not
// run.
func (e *Embedded) Connect() (*nats.Conn, error) {
	return e.ConnectThrough(func(c net.Conn) net.Conn { return c })
}

// ConnectThrough is Connect over a transport that wrap changes, for tests that cut a connection at a write. The client
// calls wrap again for every reconnect.
func (e *Embedded) ConnectThrough(wrap func(net.Conn) net.Conn) (*nats.Conn, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return nil, fmt.Errorf("connect to queue server: %w", ErrClosed)
	}
	nc, err := nats.Connect("", nats.InProcessServer(transport{e.server, wrap}), nats.Name("ddiff"), nats.MaxReconnects(-1),
		nats.ReconnectWait(100*time.Millisecond),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			e.log.logger.Warn("queue connection", "error", err)
		}))
	if err != nil {
		return nil, fmt.Errorf("connect to queue server: %w", err)
	}
	e.conns = append(e.conns, nc)
	return nc, nil
}

// transport connects a client to the server through wrap.
type transport struct {
	server nats.InProcessConnProvider
	wrap   func(net.Conn) net.Conn
}

// InProcessConn implements nats.InProcessConnProvider.
func (t transport) InProcessConn() (net.Conn, error) {
	c, err := t.server.InProcessConn()
	if err != nil {
		return nil, err
	}
	return t.wrap(c), nil
}

// Stop closes the connections, stops the server and returns when the server has written its state to disk.
func (e *Embedded) Stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	for _, nc := range e.conns {
		nc.Close()
	}
	e.server.Shutdown()
	e.server.WaitForShutdown()
}

// serverLog writes the server's log to slog and stores the first fatal message: an embedded server reports a fatal
// error only to its log.
type serverLog struct {
	logger *slog.Logger

	mu    sync.Mutex
	fatal string
}

var _ server.Logger = (*serverLog)(nil)

// Noticef implements server.Logger.
func (l *serverLog) Noticef(format string, v ...any) { l.debug(format, v) }

// Debugf implements server.Logger.
func (l *serverLog) Debugf(format string, v ...any) { l.debug(format, v) }

// Tracef implements server.Logger.
func (l *serverLog) Tracef(format string, v ...any) { l.debug(format, v) }

// Warnf implements server.Logger.
func (l *serverLog) Warnf(format string, v ...any) { l.warn(format, v) }

// Errorf implements server.Logger.
func (l *serverLog) Errorf(format string, v ...any) { l.warn(format, v) }

// Fatalf implements server.Logger.
func (l *serverLog) Fatalf(format string, v ...any) {
	l.mu.Lock()
	if l.fatal == "" {
		l.fatal = fmt.Sprintf(format, v...)
	}
	l.mu.Unlock()
	l.warn(format, v)
}

func (l *serverLog) debug(format string, v []any) {
	l.logger.Debug("queue server", "message", fmt.Sprintf(format, v...))
}

func (l *serverLog) warn(format string, v []any) {
	l.logger.Warn("queue server", "message", fmt.Sprintf(format, v...))
}

// failure returns the first fatal message as an error, or nil.
func (l *serverLog) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fatal == "" {
		return nil
	}
	return errors.New(l.fatal)
}
