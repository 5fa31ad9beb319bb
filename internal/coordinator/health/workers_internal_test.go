package health

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ddiff/internal/record"
	"ddiff/manifest"
)

// A campaign has a problem only if all live workers refuse it.
func TestRefusal(t *testing.T) {
	t.Parallel()
	now := time.Now()
	cfg := Config{Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler)}
	beat := func(name string, age time.Duration, refused ...string) record.Beat {
		b := record.Beat{Name: name, Schema: record.Schema, Age: age.Seconds(), Refused: map[string]string{}}
		for _, campaign := range refused {
			b.Refused[campaign] = "unknown method"
		}
		return b
	}
	w := &Workers{}
	if w.Refusal("new", "") != "" {
		t.Error("a refusal without workers")
	}
	w.count(t.Context(), cfg, map[string]record.Beat{
		"1": beat("one", 0, "new", "mixed"), "2": beat("two", time.Second, "new"), "3": beat("dead", 2*beatLife),
	})
	got := w.Refusal("new", "")
	for _, part := range []string{"none of 2 live workers", "unknown method"} {
		if !strings.Contains(got, part) {
			t.Errorf("the refusal is %q, want %q", got, part)
		}
	}
	for _, campaign := range []string{"mixed", "old"} {
		if got := w.Refusal(campaign, ""); got != "" {
			t.Errorf("the refusal of campaign %s is %q", campaign, got)
		}
	}
}

// TestAttackWorkerClocks counts a worker whose clock is an hour wrong, which lives and then dies.
func TestAttackWorkerClocks(t *testing.T) {
	t.Parallel()
	now := time.Now()
	// Without a board, the removal of a live worker's record is a panic.
	cfg := Config{Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler)}
	for _, wrong := range []time.Duration{-time.Hour, time.Hour} {
		w := &Workers{}
		for age, want := range map[time.Duration]int{0: 1, beatLife: 0} {
			w.count(t.Context(), cfg, map[string]record.Beat{
				"gpu": {Name: "gpu", Schema: record.Schema, At: now.Add(wrong), Age: age.Seconds()},
			})
			if n := w.Live(""); n != want {
				t.Errorf("clock %v, age %v: %d workers, want %d", wrong, age, n, want)
			}
		}
	}
}

// TestAttackLostWorkers: workers whose beats have ended are known by the campaign of their last lease.
func TestAttackLostWorkers(t *testing.T) {
	t.Parallel()
	now := time.Now()
	cfg := Config{Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler)}
	w := &Workers{}
	if names, all := w.Lost("a"); len(names)+len(all) > 0 {
		t.Errorf("lost %q of %q", names, all)
	}
	beat := func(name, campaign string, age time.Duration) record.Beat {
		return record.Beat{Name: name, Schema: record.Schema, Campaign: campaign, Age: age.Seconds()}
	}
	w.count(t.Context(), cfg, map[string]record.Beat{
		"1": beat("two", "a", beatLife), "2": beat("one", "a", 2*beatLife), "3": beat("live", "a", 0), "4": beat("other", "b", beatLife),
	})
	want := func(lost map[string]string) {
		t.Helper()
		for campaign, want := range lost {
			names, all := w.Lost(campaign)
			if got := fmt.Sprint(names, all); got != want {
				t.Errorf("lost of campaign %s: %s, want %s", campaign, got, want)
			}
		}
	}
	want(map[string]string{"a": "[one two] [one other two]", "b": "[other] [one other two]", "c": "[] [one other two]"})

	// A process that is restarted takes the name of the one that was killed.
	restarted := beat("live", "", 0)
	restarted.Started = now
	beats := map[string]record.Beat{"3": restarted}
	w.count(t.Context(), cfg, beats)
	want(map[string]string{"a": "[live] [live]"})
	now = now.Add(lostMemory + time.Second)
	w.count(t.Context(), cfg, beats)
	want(map[string]string{"a": "[] []"})
}

// TestEndedWorkers: a worker that ends without a word counts once, also if another process has taken its name before anybody looked. One
// whose record was deleted does not count.
func TestEndedWorkers(t *testing.T) {
	t.Parallel()
	cfg := Config{Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
	first := time.Now()
	beat := func(name string, started time.Time, age time.Duration) record.Beat {
		return record.Beat{Name: name, Schema: record.Schema, Started: started, Age: age.Seconds()}
	}
	w := &Workers{}
	for i, tt := range []struct {
		beats []record.Beat
		want  int
	}{
		{[]record.Beat{beat("a", first, 0), beat("b", first, 0), beat("old", first, beatLife)}, 1},
		{[]record.Beat{beat("a", first, 0), beat("b", first, beatLife), beat("old", first, 2*beatLife)}, 2},
		{[]record.Beat{beat("a", first.Add(1), 0), beat("b", first, 2*beatLife)}, 3},
		{[]record.Beat{beat("a", first.Add(1), 0), beat("b", first.Add(2), 0)}, 3},
		{[]record.Beat{beat("b", first.Add(3), beatLife)}, 5}, // a is drained, b has ended twice
		{[]record.Beat{beat("a", first.Add(4), 0), beat("b", first.Add(3), 3*beatLife)}, 5},
	} {
		all := map[string]record.Beat{}
		for _, b := range tt.beats {
			all[b.Name] = b
		}
		w.count(t.Context(), cfg, all)
		if got := w.Ended(); got != tt.want {
			t.Errorf("count %d: %d ended, want %d", i, got, tt.want)
		}
	}
}

func TestStateOfWorker(t *testing.T) {
	t.Parallel()
	for want, b := range map[string]record.Beat{
		"idle": {}, "busy": {Held: 3}, "suspended": {Held: 3, Suspended: "no space"}, "draining": {Held: 3, Suspended: "no space", Draining: true},
	} {
		if got := stateOfWorker(b); got != want {
			t.Errorf("%+v is %s, want %s", b, got, want)
		}
	}
}

// A campaign that asks for a pool has the workers of that pool only.
func TestPools(t *testing.T) {
	t.Parallel()
	now := time.Now()
	cfg := Config{Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler)}
	w := &Workers{}
	count := func(beats ...record.Beat) {
		all := map[string]record.Beat{}
		for i, b := range beats {
			b.Name, b.Schema, b.At = fmt.Sprint(i), record.Schema, now
			all[b.Name] = b
		}
		w.count(t.Context(), cfg, all)
	}
	count()
	if got := w.Refusal("a", "gpu"); !strings.Contains(got, "waiting for a worker of pool gpu; the 0 live") {
		t.Errorf("no worker: %q", got)
	}
	if !w.Takes("gpu", "a", "float16") {
		t.Error("an unknown pool takes nothing")
	}
	cpu := record.Beat{Precisions: []manifest.Precision{"float32"}, Refused: map[string]string{"b": "another method"}}
	count(cpu, cpu, record.Beat{Pool: "gpu", Held: 1})
	for _, c := range []struct {
		asked   string
		live    int
		refusal string // of campaign b
	}{
		{"", 3, ""}, {"gpu", 1, ""}, {"default", 2, "none of 2 live workers"},
		{"mig", 0, "waiting for a worker of pool mig; the 3 live workers are of other pools"},
	} {
		refusal := w.Refusal("b", c.asked)
		if w.Live(c.asked) != c.live || !strings.Contains(refusal, c.refusal) || (refusal == "") != (c.refusal == "") {
			t.Errorf("pool %q: %d live workers, refusal %q, want %+v", c.asked, w.Live(c.asked), refusal, c)
		}
	}
	if s := w.States(); s["gpu"]["busy"] != 1 || s["default"]["idle"] != 2 || len(s) != 2 {
		t.Errorf("states %v", s)
	}
	// A pool without workers is like its last ones, for an hour.
	for _, passed := range []time.Duration{0, poolMemory - time.Second, poolMemory} {
		if passed > 0 {
			now = now.Add(passed - now.Sub(w.last().pools["default"].known))
			count()
		}
		remembers := passed < poolMemory
		if w.Takes("default", "b", "") == remembers || w.Takes("default", "a", "float16") == remembers || !w.Takes("default", "a", "float32") || !w.Takes("gpu", "b", "float16") {
			t.Errorf("after %v: b %t, float16 %t", passed, w.Takes("default", "b", ""), w.Takes("default", "a", "float16"))
		}
	}
}

// TestWorkersOfOneName: two workers that write one record in turn have not ended.
func TestWorkersOfOneName(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var log bytes.Buffer
	cfg := Config{Now: func() time.Time { return now }, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	w := &Workers{}
	for i := range 10 {
		w.count(t.Context(), cfg, map[string]record.Beat{
			"gpu": {Name: "gpu", Schema: record.Schema, Started: now.Add(time.Duration(i%2) * time.Minute)},
		})
	}
	if n := w.Ended(); n > 1 { // the second one may be a later process of the first worker
		t.Errorf("%d workers have ended", n)
	}
	for i := range 3 { // later processes of one worker, by the clocks of other machines
		w.count(t.Context(), cfg, map[string]record.Beat{
			"gpu": {Name: "gpu", Schema: record.Schema, Started: now.Add(-time.Duration(i+1) * time.Hour)},
		})
	}
	if n := w.Ended(); n != 4 {
		t.Errorf("%d workers have ended, want 4", n)
	}
	if n := strings.Count(log.String(), "--name"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, &log)
	}
}
