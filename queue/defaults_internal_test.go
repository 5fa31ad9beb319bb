package queue

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// TestDefaults: the documented defaults are in use.
func TestDefaults(t *testing.T) {
	t.Parallel()
	c := Config{}.WithDefaults()
	if c.AckWait != 30*time.Second || c.MaxAttempts != 3 || c.Replicas != 1 ||
		c.Timeout != 30*time.Second || c.Now == nil || c.Logger == nil || c.Tracer == nil {
		t.Errorf("queue: %+v", c)
	}
	s := SetupConfig{}.WithDefaults()
	if s.Replicas != 1 || s.MaxResults != 10_000_000 || s.MaxDead != 1_000_000 ||
		s.DedupWindow != 2*time.Minute || s.Now == nil || s.Logger == nil {
		t.Errorf("streams: %+v", s)
	}
}

// TestStreams: every stream refuses messages at its limit instead of discarding old ones, and only the named limits exist.
func TestStreams(t *testing.T) {
	t.Parallel()
	streams := map[string]jetstream.StreamConfig{}
	c := SetupConfig{Replicas: 3, MaxResults: -1, MaxDead: 5}.WithDefaults()
	for _, s := range c.streams() {
		streams[s.Name] = s
		if s.Discard != jetstream.DiscardNew || s.Storage != jetstream.FileStorage || s.Replicas != 3 || s.MaxConsumers != 1<<20 || s.MaxMsgSize != -1 ||
			s.PersistMode != jetstream.DefaultPersistMode {
			t.Errorf("stream %+v", s)
		}
	}
	for name, want := range map[string]struct {
		bytes, messages, each int64
		age                   time.Duration
	}{
		workStream: {-1, -1, -1, 0}, deadStream: {-1, 5, -1, retention}, resultStream: {-1, -1, -1, retention},
		boardStream: {-1, -1, 1, 0},
	} {
		s := streams[name]
		if s.MaxBytes != want.bytes || s.MaxMsgs != want.messages || s.MaxMsgsPerSubject != want.each || s.MaxAge != want.age {
			t.Errorf("%s: %d bytes, %d messages, %d for each subject, %v", name, s.MaxBytes, s.MaxMsgs, s.MaxMsgsPerSubject, s.MaxAge)
		}
	}
	if s := (SetupConfig{UnsyncedWork: true}).WithDefaults().streams(); s[0].Name != workStream || s[0].PersistMode != jetstream.AsyncPersistMode {
		t.Errorf("unsynced work: %+v", s[0])
	}
}

// TestNextEpoch: epochs grow, also where the clock is behind the newest one.
func TestNextEpoch(t *testing.T) {
	t.Parallel()
	q := &Queue{cfg: Config{Now: func() time.Time { return time.Unix(0, 100) }}}
	for newest, want := range map[int64]int64{0: 100, 98: 100, 99: 100, 100: 101, 500: 501} {
		q.epoch.Store(newest)
		if got := q.nextEpoch(); got != want {
			t.Errorf("after the epoch %d: %d, want %d", newest, got, want)
		}
	}
}
