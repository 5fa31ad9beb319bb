package health

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"ddiff/internal/record"
)

// TestBeatLife counts beats just before and at the end of their life, live and hung ones.
func TestBeatLife(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for age, want := range map[time.Duration]int{0: 1, beatLife - 1: 1, beatLife: 0, 20 * beatLife: 0} {
		for _, hung := range []string{"", "stage solve"} {
			var log strings.Builder
			cfg := Config{Now: func() time.Time { return now }, Logger: slog.New(slog.NewTextHandler(&log, nil))}
			w := &Workers{}
			w.count(t.Context(), cfg, map[string]record.Beat{
				"1": {Name: "gpu", Schema: record.Schema, Age: age.Seconds(), Hung: hung},
			})
			live, warned := want, 0
			if hung != "" {
				live, warned = 0, want
			}
			if n := strings.Count(log.String(), "worker hung"); w.Live("") != live || n != warned {
				t.Errorf("age %v, hung %q: %d live workers, %d warnings", age, hung, w.Live(""), n)
			}
		}
	}
}

// The problem of a campaign counts the workers that are suspended for it or for all campaigns.
func TestSuspendedWorkers(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	var log strings.Builder
	cfg := Config{Now: func() time.Time { return now }, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	w := &Workers{}
	if w.Problem("a") != "" {
		t.Error("a problem without workers")
	}
	for range 2 {
		w.count(t.Context(), cfg, map[string]record.Beat{
			"1": {Name: "one", Schema: record.Schema, At: now, Suspended: "no disk", SuspendedCampaign: "a", Campaign: "a"},
			"2": {Name: "two", Schema: record.Schema, At: now, Suspended: "no key", Campaign: "a"},
			"3": {Name: "three", Schema: record.Schema + 1, Version: "9", At: now, Campaign: "a"},
		})
	}
	for campaign, want := range map[string]string{
		"a": "2 of 3 workers are suspended: one: no disk", "b": "1 of 3 workers are suspended: two: no key",
	} {
		if got := w.Problem(campaign); got != want {
			t.Errorf("campaign %s: problem %q, want %q", campaign, got, want)
		}
	}
	if n := strings.Count(log.String(), "worker has another version"); n != 1 || !strings.Contains(log.String(), "worker=three version=9") {
		t.Errorf("log %s", log.String())
	}
	nobody := func(string) bool { return false }
	if !w.Works("a", nobody) || w.Works("b", nobody) || w.Works("a", func(name string) bool { return name == "three" }) {
		t.Error("only worker three works, on campaign a")
	}
}
