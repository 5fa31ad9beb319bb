package telemetry

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setOTel sets the OTEL_ variables of the process environment and unsets all others.
func setOTel(t *testing.T, variables map[string]string) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
	for name, value := range variables {
		t.Setenv(name, value)
	}
}

// start starts telemetry; the test must shut it down.
func start(t *testing.T, cfg Config) *Telemetry {
	t.Helper()
	if cfg.LogOutput == nil {
		cfg.LogOutput = t.Output()
	}
	tel, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	return tel
}

func shutDown(t *testing.T, tel *Telemetry) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := tel.Shutdown(ctx); err != nil {
		t.Fatalf("shut down: %v", err)
	}
}
