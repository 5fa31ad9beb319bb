package telemetry

import (
	"log/slog"
	"strings"
	"sync"
	"time"
)

// outageEnd is the time without an error after which another error is a new outage.
const outageEnd = 10 * time.Minute

// outages logs failed exports: one line for each outage and kind of error. A kind is the beginning of the message.
type outages struct {
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex
	last map[string]time.Time // of the last error, by kind
}

const maxKinds = 16

// Handle implements otel.ErrorHandler.
func (o *outages) Handle(err error) {
	kind, _, _ := strings.Cut(err.Error(), ":")
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	last, known := o.last[kind]
	if !known && len(o.last) >= maxKinds {
		return
	}
	o.last[kind] = now
	if known && now.Sub(last) < outageEnd {
		return
	}
	o.log.Warn("telemetry export failed; repeated failures are not logged", "error", err)
}
