package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// EmbeddedConfig describes a server inside the process.
type EmbeddedConfig struct {
	// Dir is where the streams are kept; it is created when it is missing. One server at
	// a time may use it, which the caller ensures.
	Dir string
	// Logger takes the server's log: notices as debug, warnings and errors as warn.
	// Default: nothing is logged.
	Logger *slog.Logger
	// MaxStoreBytes limits the streams' size on disk. Default, and at any value below 1:
	// three quarters of what the disk has free when the server starts.
	MaxStoreBytes int64
	// SyncAlways syncs every message to disk before it is acknowledged, see the package
	// comment for its price. Default: synced every two minutes.
	SyncAlways bool
}

// Embedded is a NATS server with JetStream in the process. It opens no port and handles no
// signals; only Connect reaches it.
type Embedded struct {
	server *server.Server
	logger *slog.Logger

	mu     sync.Mutex
	closed bool
	conns  []*nats.Conn
}

// StartEmbedded starts a server and returns when it takes connections and has read the
// streams in Dir. It gives up when ctx ends. The server runs until Close.
func StartEmbedded(ctx context.Context, cfg EmbeddedConfig) (*Embedded, error) {
	if cfg.Dir == "" {
		return nil, fmt.Errorf("%w: Dir is empty", ErrConfig)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("start queue server in %s: %w", cfg.Dir, err)
	}
	s, err := server.NewServer(&server.Options{
		ServerName:             "ddiff",
		DontListen:             true,
		NoSigs:                 true,
		JetStream:              true,
		StoreDir:               cfg.Dir,
		JetStreamMaxStore:      max(cfg.MaxStoreBytes, 0),
		SyncAlways:             cfg.SyncAlways,
		DisableJetStreamBanner: true,
	})
	if err != nil {
		return nil, fmt.Errorf("start queue server in %s: %w", cfg.Dir, err)
	}
	log := &serverLog{logger: cfg.Logger}
	s.SetLoggerV2(log, false, false, false)
	e := &Embedded{server: s, logger: cfg.Logger}
	s.Start()
	if err := ready(ctx, s, log); err != nil {
		e.Close()
		return nil, fmt.Errorf("start queue server in %s: %w", cfg.Dir, err)
	}
	return e, nil
}

// ready waits until the server takes connections.
func ready(ctx context.Context, s *server.Server, log *serverLog) error {
	for {
		if message := log.failure(); message != "" {
			return errors.New(message)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.ReadyForConnections(100 * time.Millisecond) {
			return nil
		}
	}
}

// Connect opens a connection to the server. The caller may close it; Close does too.
func (e *Embedded) Connect() (*nats.Conn, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, fmt.Errorf("connect to queue server: %w", ErrClosed)
	}
	nc, err := nats.Connect("", nats.InProcessServer(e.server), nats.Name("ddiff"), nats.MaxReconnects(-1),
		nats.ReconnectWait(100*time.Millisecond),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			e.logger.Warn("queue connection", "error", err)
		}))
	if err != nil {
		return nil, fmt.Errorf("connect to queue server: %w", err)
	}
	e.conns = append(e.conns, nc)
	return nc, nil
}

// Close closes the connections, stops the server and waits until it has written its state.
// It may be called more than once.
func (e *Embedded) Close() {
	e.mu.Lock()
	e.closed = true
	conns := e.conns
	e.conns = nil
	e.mu.Unlock()
	for _, nc := range conns {
		nc.Close()
	}
	e.server.Shutdown()
	e.server.WaitForShutdown()
}
