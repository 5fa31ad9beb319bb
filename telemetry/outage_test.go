package telemetry

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func t0() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// TestOutagesAreOneLine: an outage is one line for each kind of error, and a later outage is another line.
func TestOutagesAreOneLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := t0()
	o := &outages{log: slog.New(slog.NewTextHandler(&out, nil)), now: func() time.Time { return now }, last: map[string]time.Time{}}
	lines := func() int { return strings.Count(out.String(), "telemetry export failed") }
	for i := range 5000 {
		o.Handle(fmt.Errorf("traces export: attempt %d", i))
		now = now.Add(5 * time.Second)
	}
	if lines() != 1 {
		t.Errorf("%d lines for one outage", lines())
	}
	o.Handle(errors.New("failed to upload metrics: refused"))
	now = now.Add(outageEnd)
	o.Handle(errors.New("traces export: again"))
	if lines() != 3 {
		t.Errorf("%d lines, want 3:\n%s", lines(), out.String())
	}
	for i := range 1000 {
		o.Handle(fmt.Errorf("kind %d", i))
	}
	if lines() > 3+maxKinds || len(o.last) > maxKinds {
		t.Errorf("%d lines, %d kinds", lines(), len(o.last))
	}
}

// TestReceiverRestarts: a receiver that was killed and restarted gets the spans that end later, and one line reports the
// outage.
func TestReceiverRestarts(t *testing.T) {
	var got atomic.Int64
	serve := func(address string) (string, *http.Server) {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
		must(t, err)
		s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) })}
		go s.Serve(l) //nolint:errcheck // ends with the test
		return l.Addr().String(), s
	}
	address, first := serve("127.0.0.1:0")
	setOTel(t, map[string]string{
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://" + address + "/v1/traces", "OTEL_BSP_SCHEDULE_DELAY": "10", "OTEL_BSP_EXPORT_TIMEOUT": "50",
	})
	var log lockedBuffer
	tel := start(t, Config{LogOutput: &log})
	send := func() {
		_, span := tel.Tracer("test").Start(t.Context(), "span")
		span.End()
		time.Sleep(20 * time.Millisecond) // the processor exports it: Flush would keep the error from its log
	}
	await := func(what string, condition func() bool) {
		t.Helper()
		for begin := time.Now(); !condition(); {
			if time.Since(begin) > 20*time.Second {
				t.Fatalf("waited in vain: %s; log: %s", what, log.String())
			}
			send()
		}
	}
	await("the first span", func() bool { return got.Load() > 0 })
	must(t, first.Close())
	await("the outage", func() bool { return strings.Contains(log.String(), "telemetry export failed") })
	before := got.Load()
	_, second := serve(address)
	defer second.Close() //nolint:errcheck // ends with the test
	await("a later span", func() bool { return got.Load() > before })
	shutDown(t, tel)
	if n := strings.Count(log.String(), "\n"); n > 2 {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}
