package queue

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
)

// serverLog sends the server's log to slog and keeps its first fatal message: an embedded
// server that cannot go on says so there, and nowhere else.
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

// failure is the first fatal message, or "".
func (l *serverLog) failure() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatal
}
