package shard

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"ddiff/manifest"
	"ddiff/restore/prior"
	"ddiff/storage"
)

// Every setting of a row changes its digest, and nothing else does.
func TestRowDigests(t *testing.T) {
	t.Parallel()
	number, seed := 0.5, uint64(7)
	base := func() manifest.Row { return manifest.Row{Name: "n", Image: "i", Width: 3, Height: 5} }
	same := base()
	same.Name, same.Err = "other", errors.New("unreadable")
	if digestOfRow(same) != digestOfRow(base()) {
		t.Error("name or error changes the digest")
	}
	seen := map[string]string{digestOfRow(base()): "nothing"}
	for name, change := range map[string]func(r *manifest.Row){
		"image": func(r *manifest.Row) { r.Image = "j" }, "measurement": func(r *manifest.Row) { r.Measurement = "i" },
		"digest": func(r *manifest.Row) { r.ImageSHA256 = "i" }, "mask": func(r *manifest.Row) { r.Overrides.Mask = "i" },
		"kernel": func(r *manifest.Row) { r.Overrides.Kernel = "i" }, "task": func(r *manifest.Row) { r.Overrides.Task = "i" },
		"width": func(r *manifest.Row) { r.Width = 4 }, "height": func(r *manifest.Row) { r.Height = 4 }, "swapped": func(r *manifest.Row) { r.Width, r.Height = 5, 3 },
		"sigma": func(r *manifest.Row) { r.Overrides.Sigma = new(manifest.Sigma(number)) }, "seed": func(r *manifest.Row) { r.Overrides.Seed = &seed },
		"parameter": func(r *manifest.Row) { r.Overrides.Params = map[string]float64{"a": 1} },
		"value":     func(r *manifest.Row) { r.Overrides.Params = map[string]float64{"a": 2} },
		"no files":  func(r *manifest.Row) { r.Image = "" }, "another unreadable line": func(r *manifest.Row) { r.Image, r.Name = "", "m" },
	} {
		r := base()
		change(&r)
		if other, found := seen[digestOfRow(r)]; found {
			t.Errorf("%s and %s have equal digests", name, other)
		}
		seen[digestOfRow(r)] = name
	}
}

// A refused row fails after two rounds, an unavailable one after five.
func TestConfirmedFailures(t *testing.T) {
	t.Parallel()
	for rounds, want := range map[int]string{1: "01", deniedRounds: "1", unavailableRounds - 1: "1", unavailableRounds: ""} {
		r := &rowReader{rows: make([]manifest.Row, 2)}
		rest := ""
		for _, u := range r.failConfirmed([]unreadRow{{0, fmt.Errorf("get: %w", storage.ErrAccess)}, {1, storage.ErrUnavailable}}, rounds) {
			rest += fmt.Sprint(u.row)
		}
		if rest != want || (r.rows[0].Err != nil) != !strings.Contains(want, "0") || (r.rows[1].Err != nil) != !strings.Contains(want, "1") {
			t.Errorf("%d rounds: rows %q left, errors %v and %v", rounds, rest, r.rows[0].Err, r.rows[1].Err)
		}
	}
}

// TestSources has the addresses that become unavailable together.
func TestSources(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"/a/b.png": "files", "file:///a": "files", "a.tar#b": "files", "tar+s3://b/a.tar?endpoint=https://x#m": "s3 https://x",
		"parquet+s3://b/a?endpoint=y": "s3 y", "s3://b/a": "s3 ", "https://x/a": "web", "http://y/a": "web", "%zz://": "files",
	} {
		if got := sourceOf(address); got != want {
			t.Errorf("%s: source %q, want %q", address, got, want)
		}
	}
}

// TestConfigFields names each field that is missing.
func TestConfigFields(t *testing.T) {
	t.Parallel()
	auto := manifest.Default()
	auto.Precision = manifest.PrecisionAuto
	for want, change := range map[string]func(c *Config){
		"Spec is missing": func(c *Config) { c.Spec = nil }, "Prior is missing": func(c *Config) { c.Prior = nil },
		"Precision is missing": func(c *Config) { c.Spec = auto }, "Sources is missing": func(c *Config) { c.Sources = nil },
	} {
		c := Config{Spec: manifest.Default(), Prior: &prior.Description{}, Sources: manifest.Files{}}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
