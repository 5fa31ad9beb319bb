package queue

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
)

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
