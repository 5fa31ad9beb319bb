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

	"ddiff/internal/lifecycle"
)

// EmbeddedConfig describes a server inside the process.
type EmbeddedConfig struct {
	// Dir is the directory of the streams; Start creates it. The caller ensures that one server at a time uses it.
	Dir string
	// Logger receives the server's log: notices as debug, warnings and errors as warn. Default: no log.
	Logger *slog.Logger
}

// Embedded is a NATS server with JetStream in the process, a service of package lifecycle. It opens no port and handles
// no signals; only Connect reaches it.
type Embedded struct {
	cfg     EmbeddedConfig
	service lifecycle.Service

	mu     sync.Mutex
	server *server.Server // nil unless the server runs
	conns  []*nats.Conn
}

// NewEmbedded returns a server that is not started.
func NewEmbedded(cfg EmbeddedConfig) *Embedded {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	return &Embedded{cfg: cfg}
}

// StartEmbedded starts a new server, see Start. The caller must call Stop.
func StartEmbedded(ctx context.Context, cfg EmbeddedConfig) (*Embedded, error) {
	e := NewEmbedded(cfg)
	if err := e.Start(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

// Start returns when the server accepts connections and has read the streams in Dir. ctx bounds the start alone; the
// server runs until Stop.
func (e *Embedded) Start(ctx context.Context) error {
	err := e.service.Start(context.WithoutCancel(ctx), func(running context.Context, ready func()) error {
		return e.run(ctx, running, ready)
	})
	return wrap(err, "start queue server in %q", e.cfg.Dir)
}

// run starts the server within starting, and stops it when running ends.
func (e *Embedded) run(starting, running context.Context, ready func()) error {
	if e.cfg.Dir == "" {
		return fmt.Errorf("%w: Dir is empty", ErrConfig)
	}
	if err := os.MkdirAll(e.cfg.Dir, 0o755); err != nil {
		return err
	}
	s, err := server.NewServer(&server.Options{
		ServerName:             "ddiff",
		DontListen:             true,
		NoSigs:                 true,
		JetStream:              true,
		StoreDir:               e.cfg.Dir,
		DisableJetStreamBanner: true,
	})
	if err != nil {
		return err
	}
	log := &serverLog{logger: e.cfg.Logger}
	s.SetLoggerV2(log, false, false, false)
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	for !s.ReadyForConnections(100 * time.Millisecond) {
		if err := errors.Join(log.failure(), starting.Err(), context.Cause(running)); err != nil {
			return err
		}
	}
	if err := errors.Join(log.failure(), starting.Err()); err != nil {
		return err
	}
	e.mu.Lock()
	e.server = s
	e.mu.Unlock()
	ready()

	<-running.Done()
	e.mu.Lock()
	conns := e.conns
	e.server, e.conns = nil, nil
	e.mu.Unlock()
	for _, nc := range conns {
		nc.Close()
	}
	return nil
}

// Connect opens a connection to the server. The caller may close it; Stop also closes it. ErrClosed: the server does not
// run.
func (e *Embedded) Connect() (*nats.Conn, error) { return e.ConnectThrough(nil) }

// ConnectThrough is Connect over a transport that wrap changes, for tests that cut a connection at a write. The client
// calls wrap again for every reconnect. Default of wrap: no change.
func (e *Embedded) ConnectThrough(wrap func(net.Conn) net.Conn) (*nats.Conn, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server == nil {
		return nil, fmt.Errorf("connect to queue server: %w", ErrClosed)
	}
	nc, err := nats.Connect("", nats.InProcessServer(transport{e.server, wrap}), nats.Name("ddiff"), nats.MaxReconnects(-1),
		nats.ReconnectWait(100*time.Millisecond),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			e.cfg.Logger.Warn("queue connection", "error", err)
		}))
	if err != nil {
		return nil, fmt.Errorf("connect to queue server: %w", err)
	}
	e.conns = append(e.conns, nc)
	return nc, nil
}

// transport connects a client to the server through wrap.
type transport struct {
	*server.Server
	wrap func(net.Conn) net.Conn
}

// InProcessConn implements nats.InProcessConnProvider.
func (t transport) InProcessConn() (net.Conn, error) {
	c, err := t.Server.InProcessConn()
	if err == nil && t.wrap != nil {
		c = t.wrap(c)
	}
	return c, err
}

// Stop closes the connections, stops the server and returns when the server has written its state to disk.
func (e *Embedded) Stop() { e.service.Stop() }

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
