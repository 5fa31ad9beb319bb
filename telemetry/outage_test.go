package telemetry

import (
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

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
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}
