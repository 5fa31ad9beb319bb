package queue

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestNameLimits has names and ids at their limits.
func TestNameLimits(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"": false, "a": true, strings.Repeat("a", MaxNameBytes): true, strings.Repeat("a", MaxNameBytes+1): false} {
		if _, err := token("Campaign", name); (err == nil) != want || err != nil && !errors.Is(err, ErrBadName) {
			t.Errorf("a name of %d bytes: %v", len(name), err)
		}
	}
	for id, want := range map[string]bool{
		"": false, "a": true, strings.Repeat("a", MaxIDBytes): true, strings.Repeat("a", MaxIDBytes+1): false,
		"a b": true, " a": false, "a ": false, "a\n": false, "a\x00b": false, "\xff": false, "größe": true,
	} {
		if err := checkID(id); (err == nil) != want || err != nil && !errors.Is(err, ErrBadName) {
			t.Errorf("id %.20q of %d bytes: %v", id, len(id), err)
		}
	}
	for name, want := range map[string]string{"azAZ09-_": "azAZ09-_", "`{@[/:": "=60=7B=40=5B=2F=3A", ".=": "=2E=3D"} {
		if got := Token(name); got != want {
			t.Errorf("token of %q is %q", name, got)
		}
	}
	for _, bad := range []string{"=", "=4", "=4G", "a=41="} {
		if name, err := untoken(bad); !errors.Is(err, ErrBadName) {
			t.Errorf("token %q is %q, %v", bad, name, err)
		}
	}
}

// TestConfigLimits has every number at and beyond its limits.
func TestConfigLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(c *Config)
		want   string
	}{
		"shortest lease":   {func(c *Config) { c.AckWait = 10 * time.Millisecond }, ""},
		"shorter lease":    {func(c *Config) { c.AckWait = 10*time.Millisecond - 1 }, "AckWait"},
		"one attempt":      {func(c *Config) { c.MaxAttempts = 1 }, ""},
		"negative number":  {func(c *Config) { c.MaxAttempts = -1 }, "MaxAttempts"},
		"five servers":     {func(c *Config) { c.Replicas = 5 }, ""},
		"six servers":      {func(c *Config) { c.Replicas = 6 }, "Replicas"},
		"negative servers": {func(c *Config) { c.Replicas = -1 }, "Replicas"},
		"negative timeout": {func(c *Config) { c.Timeout = -1 }, "Timeout"},
		"short timeout":    {func(c *Config) { c.Timeout = 1 }, ""},
		"no campaign":      {func(c *Config) { c.Campaign = "" }, "Campaign"},
		"long campaign":    {func(c *Config) { c.Campaign = strings.Repeat("c", MaxNameBytes+1) }, "Campaign"},
	} {
		cfg := Config{Campaign: "c"}
		c.change(&cfg)
		err := cfg.Validate()
		sentinel := ErrConfig
		if c.want == "Campaign" {
			sentinel = ErrBadName
		}
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, sentinel) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Marks of zero leave no header, and each name is written once.
func TestWrittenMarks(t *testing.T) {
	t.Parallel()
	old := func() nats.Header {
		return nats.Header{headerFaults: {"9"}, headerDisputed: {"old"}, headerPasses: {"9"}, headerID: {"id"}}
	}
	for _, c := range []struct {
		marks Marks
		want  nats.Header
	}{
		{Marks{}, nats.Header{headerID: {"id"}}},
		{Marks{Faults: 1}, nats.Header{headerID: {"id"}, headerFaults: {"1"}}},
		{Marks{Passes: 1}, nats.Header{headerID: {"id"}, headerPasses: {"1"}}},
		{Marks{Disputed: []string{"b", "a.", "b"}}, nats.Header{headerID: {"id"}, headerDisputed: {"a=2E,b"}}},
	} {
		header := old()
		c.marks.write(header)
		if !reflect.DeepEqual(header, c.want) {
			t.Errorf("%+v: %v, want %v", c.marks, header, c.want)
		}
	}
}

// A message has the headers of its identity; round 0 has none.
func TestIdentityHeaders(t *testing.T) {
	t.Parallel()
	for round, wanted := range map[int]string{0: "", 1: "1", 12: "12"} {
		i := identity{campaign: "c", epoch: 5, round: round, id: "x"}
		msg, err := i.message(t.Context(), "s", []byte("p"))
		if err != nil || msg.Header.Get(headerRound) != wanted || msg.Header.Get(jetstream.MsgIDHeader) != i.messageID() {
			t.Errorf("round %d: %v, %v", round, msg, err)
			continue
		}
		if got := identityOf("c", msg.Header); got != i {
			t.Errorf("%+v is read as %+v", i, got)
		}
	}
	if _, err := (identity{campaign: "c", id: "x", round: -1}).message(t.Context(), "s", nil); !errors.Is(err, ErrConfig) {
		t.Errorf("a negative round: %v", err)
	}
	for attempt, want := range map[int][2]bool{2: {false, false}, 3: {true, false}, 4: {true, true}} {
		l := &Lease{q: &Queue{cfg: Config{MaxAttempts: 3}}, attempt: attempt}
		if l.Last() != want[0] || l.Exhausted() != want[1] || l.Attempt() != attempt {
			t.Errorf("attempt %d of 3: last %t, exhausted %t", attempt, l.Last(), l.Exhausted())
		}
	}
}

// Versions are compared part by part; one that cannot be read is not older.
func TestOlderVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"2.11.3": false, "2.11.2": true, "2.11.4": false, "2.10.9": true, "2.12.0": false, "1.99.99": true, "3.0.0": false, "v2.11.2": true,
		"2.11.2-RC.1": true, "2.11.3-RC.1": false, "2.11": false, "2.10.x": false, "": false, "1.2.3.4": false,
	} {
		if olderThan(version, "2.11.3") != want {
			t.Errorf("version %q is older: %t, want %t", version, !want, want)
		}
	}
}
