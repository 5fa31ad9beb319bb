package coordinator

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"ddiff/manifest"
)

// TestBeatLife counts beats just before and at the end of their life, live and hung ones.
func TestBeatLife(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for age, want := range map[time.Duration]int{0: 1, beatLife - 1: 1, beatLife: 0, 20 * beatLife: 0} {
		for _, hung := range []string{"", "stage solve"} {
			var log strings.Builder
			cfg := Config{Now: func() time.Time { return now }, Logger: slog.New(slog.NewTextHandler(&log, nil))}
			w := &workerCount{seen: map[string]beatSighting{"1": {now, now.Add(-age)}}}
			w.count(t.Context(), cfg, map[string]manifest.Beat{
				"1": {Name: "gpu", Schema: manifest.RecordSchema, At: now, Hung: hung},
			}, map[string]bool{})
			live, warned := want, 0
			if hung != "" {
				live, warned = 0, want
			}
			if n := strings.Count(log.String(), "worker hung"); w.live() != live || n != warned {
				t.Errorf("age %v, hung %q: %d live workers, %d warnings", age, hung, w.live(), n)
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
	w := &workerCount{}
	if w.problem("a") != "" {
		t.Error("a problem without workers")
	}
	warned := map[string]bool{}
	for range 2 {
		w.count(t.Context(), cfg, map[string]manifest.Beat{
			"1": {Name: "one", Schema: manifest.RecordSchema, At: now, Suspended: "no disk", SuspendedCampaign: "a", Campaign: "a"},
			"2": {Name: "two", Schema: manifest.RecordSchema, At: now, Suspended: "no key", Campaign: "a"},
			"3": {Name: "three", Schema: manifest.RecordSchema + 1, Version: "9", At: now, Campaign: "a"},
		}, warned)
	}
	for campaign, want := range map[string]string{
		"a": "2 of 3 workers are suspended: one: no disk", "b": "1 of 3 workers are suspended: two: no key",
	} {
		if got := w.problem(campaign); got != want {
			t.Errorf("campaign %s: problem %q, want %q", campaign, got, want)
		}
	}
	if n := strings.Count(log.String(), "worker has another version"); n != 1 || !strings.Contains(log.String(), "worker=three version=9") {
		t.Errorf("log %s", log.String())
	}
	nobody := func(string) bool { return false }
	if !w.works("a", nobody) || w.works("b", nobody) || w.works("a", func(name string) bool { return name == "three" }) {
		t.Error("only worker three works, on campaign a")
	}
}

// A fault pauses the campaign if nothing was finished in the reported time and all workers on it have reported one of late.
func TestFaultPauses(t *testing.T) {
	t.Parallel()
	const limit = 10 * time.Second
	for _, c := range []struct {
		name     string
		quiet    time.Duration
		working  map[string]string
		reported time.Duration // age of the report of the other worker, 0 for none
		want     bool
	}{
		{"alone, quiet long enough", limit, nil, 0, true},
		{"alone, not quiet", limit - 1, nil, 0, false},
		{"another works", limit, map[string]string{"other": "c"}, 0, false},
		{"another works elsewhere", limit, map[string]string{"other": "d"}, 0, true},
		{"another has reported", limit, map[string]string{"other": "c"}, 2 * limit, true},
		{"another has reported too long ago", limit, map[string]string{"other": "c"}, 2*limit + 1, false},
		{"only itself works", limit, map[string]string{"gpu": "c"}, 0, true},
	} {
		now := time.Unix(1e9, 0)
		var log strings.Builder
		r := decidingRunner(t, &now, &log)
		r.id, r.progress, r.s.workers.working = "c", now.Add(-c.quiet), c.working
		if c.reported > 0 {
			r.faults.last = map[string]time.Time{"other": now.Add(-c.reported)}
		}
		r.noteFault([]byte(`{"worker":"gpu","reason":"no disk","seconds":10}`))
		if (r.faults.pending != nil) != c.want {
			t.Errorf("%s: fault %+v", c.name, r.faults.pending)
		}
		r.faults.pending = nil
		for _, damaged := range []string{`{"worker"`, `{"worker":"gpu"}`, `{"worker":"gpu","seconds":-1}`, `{"worker":"gpu","seconds":1e12}`} {
			log.Reset()
			r.noteFault([]byte(damaged))
			if r.faults.pending != nil || !strings.Contains(log.String(), "skipped a report") {
				t.Errorf("the report %s: fault %+v", damaged, r.faults.pending)
			}
		}
	}
}
