package health

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ddiff/internal/queue"
)

// usages returns one answer after the other, and ends the watch with the last one.
func usages(ctx context.Context, t *testing.T, a *Streams, step time.Duration, answers ...any) string {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var log strings.Builder
	now := time.Unix(1e9, 0)
	i := 0
	err := a.Watch(ctx, Config{
		Tick: time.Microsecond, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Now: func() time.Time { now = now.Add(step); return now },
		Usage: func(ctx context.Context) ([]queue.StreamUsage, error) {
			if i == len(answers) { // a last tick may come after the end
				return nil, ctx.Err()
			}
			answer := answers[i]
			if i++; i == len(answers) {
				cancel()
			}
			if err, failed := answer.(error); failed {
				return nil, err
			}
			return answer.([]queue.StreamUsage), nil
		},
	})
	must(t, err)
	return log.String()
}

// An alarm begins at 80 % of a stream, names all such streams, and ends with them.
func TestAlarmThreshold(t *testing.T) {
	t.Parallel()
	stream := func(name string, messages uint64) queue.StreamUsage {
		return queue.StreamUsage{Name: name, Messages: messages, MaxMessages: 1000}
	}
	const results = "DDIFF_RESULT"
	if !stream(results, 0).Results() {
		t.Fatal("the result stream has another name")
	}
	for _, c := range []struct {
		streams []queue.StreamUsage
		want    string
		results bool
	}{
		{[]queue.StreamUsage{stream("A", 799), stream(results, 799)}, "", false},
		{[]queue.StreamUsage{stream("A", 800), stream(results, 799)}, "stream A is 80 % full", false},
		{[]queue.StreamUsage{stream(results, 900), stream("A", 1000)}, "stream " + results + " is 90 % full; stream A is 100 % full", true},
	} {
		var a Streams
		usages(t.Context(), t, &a, time.Second, c.streams)
		if a.Problem() != c.want || a.ResultsFull() != c.results {
			t.Errorf("%v: problem %q, results %t", c.streams, a.Problem(), a.ResultsFull())
		}
		usages(t.Context(), t, &a, time.Second, errors.New("no answer"), errors.New("the end"))
		if a.Problem() != c.want {
			t.Errorf("after an error: problem %q, want %q", a.Problem(), c.want)
		}
		usages(t.Context(), t, &a, time.Second, []queue.StreamUsage{})
		if a.Problem() != "" || a.ResultsFull() {
			t.Errorf("problem %q stays", a.Problem())
		}
	}
}

// The alarm is logged at once, then every ten minutes; an error at the end of the leader is not logged.
func TestAlarmLog(t *testing.T) {
	t.Parallel()
	full := []queue.StreamUsage{{Name: "A", Messages: 1, MaxMessages: 1}}
	for step, want := range map[time.Duration]int{alarmLog/2 - 1: 1, alarmLog / 2: 2, alarmLog: 3} {
		log := usages(t.Context(), t, &Streams{}, step, full, full, full)
		if n := strings.Count(log, "nearly full"); n != want {
			t.Errorf("with a check every %v the log has %d lines, want %d: %s", step, n, want, log)
		}
	}
	log := usages(t.Context(), t, &Streams{}, time.Second, errors.New("no answer"), errors.New("the end"))
	if !strings.Contains(log, "no answer") || strings.Contains(log, "the end") || strings.Contains(log, "nearly full") {
		t.Errorf("log %q", log)
	}
}
