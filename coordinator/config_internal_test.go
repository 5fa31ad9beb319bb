package coordinator

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"ddiff/internal/queue"
	"ddiff/manifest"
	"ddiff/storage"
)

// Each field that is missing or negative is named; zero numbers select the default, and others stay.
func TestConfigFields(t *testing.T) {
	t.Parallel()
	store, err := storage.NewDir(t.TempDir())
	must(t, err)
	complete := func() Config {
		return Config{
			Board: &queue.Board{}, Open: queueOf(nil), Store: store, Sources: manifest.Files{},
			Logger: slog.New(slog.DiscardHandler), Tracer: noop.NewTracerProvider().Tracer(""),
		}
	}
	must(t, complete().Validate())
	for want, change := range map[string]func(c *Config){
		"Board is missing": func(c *Config) { c.Board = nil }, "Open is missing": func(c *Config) { c.Open = nil },
		"Store is missing": func(c *Config) { c.Store = nil }, "Sources is missing": func(c *Config) { c.Sources = nil },
		"Logger is missing": func(c *Config) { c.Logger = nil }, "Tracer is missing": func(c *Config) { c.Tracer = nil },
		"Fold: -1 is negative": func(c *Config) { c.Fold = -1 }, "AckWait: -1ns": func(c *Config) { c.AckWait = -1 },
		"Tick: -1ns": func(c *Config) { c.Tick = -1 }, "Stall: -1ns": func(c *Config) { c.Stall = -1 },
		"Restart: -1ns": func(c *Config) { c.Restart = -1 }, "Probe: -1ns": func(c *Config) { c.Probe = -1 },
		"ArchiveAfter: -1ns": func(c *Config) { c.ArchiveAfter = -1 },
	} {
		c := complete()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	c := complete().withDefaults()
	if c.Name != "coordinator" || c.AckWait != time.Minute || c.Tick != time.Second || c.Stall != 15*time.Second || c.Restart != 3*time.Second ||
		c.Fold != 20_000 || c.Probe != 5*time.Second || c.ArchiveAfter != time.Hour || c.Now == nil || c.Models == nil {
		t.Errorf("defaults %+v", c)
	}
	set := complete()
	set.Name, set.AckWait, set.Tick, set.Stall, set.Restart, set.Fold, set.Probe, set.ArchiveAfter = "b", 1, 2, 3, 4, 5, 6, 7
	set.Now = func() time.Time { return time.Unix(8, 0) }
	c = set.withDefaults()
	if c.Name != "b" || c.AckWait != 1 || c.Tick != 2 || c.Stall != 3 || c.Restart != 4 || c.Fold != 5 || c.Probe != 6 || c.ArchiveAfter != 7 || c.Now().Unix() != 8 {
		t.Errorf("set %+v", c)
	}
}
