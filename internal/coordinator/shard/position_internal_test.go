package shard

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/internal/restore/prior"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// rowsOf returns a window with an item for each row from first to last, and a failed result for each fourth.
func rowsOf(first, last int) *Window {
	w := &Window{Header: Header{Row: first, Rows: last - first, Item: first, Items: last - first, Listed: last}}
	for i := first; i < last; i++ {
		it := item.Item{Index: i, Name: fmt.Sprintf("r%d", i), Image: &item.Source{Path: fmt.Sprintf("/%d.png", i)}}
		if i%4 == 3 {
			w.Failed = append(w.Failed, item.Result{Item: it})
		} else {
			w.Items = append(w.Items, it)
		}
	}
	slices.Reverse(w.Items)
	return w
}

// The tail has the keys of the last rows of all windows, at most TailRows.
func TestTail(t *testing.T) {
	t.Parallel()
	for _, ends := range [][]int{{0}, {1}, {TailRows - 1}, {TailRows}, {TailRows + 5}, {10, 30}, {10, TailRows}, {10, TailRows + 3}, {TailRows + 7, TailRows + 9}, {5, 2*TailRows + 1}} {
		var p Position
		begin := 0
		for _, end := range ends {
			w := rowsOf(begin, end)
			w.Number = p.Number
			p = w.Next(p)
			begin = end
		}
		if p.Row != begin || p.Listed != begin || p.Item != begin || p.Number != len(ends) {
			t.Errorf("%v: position %d, %d, %d, %d", ends, p.Number, p.Row, p.Item, p.Listed)
		}
		n := min(begin, TailRows)
		if p.tail.len() != n {
			t.Fatalf("%v: %d keys, want %d", ends, p.tail.len(), n)
		}
		for i := range n {
			row := begin - n + i
			want := keyOfRow(manifest.Row{Name: fmt.Sprintf("r%d", row), Image: fmt.Sprintf("/%d.png", row)})
			if p.tail.key(i) != want {
				t.Fatalf("%v: key %d is not that of row %d", ends, i, row)
			}
		}
	}
}

// Several items of one row have one key.
func TestRowKeysOfItems(t *testing.T) {
	t.Parallel()
	w := &Window{}
	for i, name := range []string{"a", "a", "b", "c", "c"} {
		w.Items = append(w.Items, item.Item{Index: i, Name: name, Image: &item.Source{Path: name}})
	}
	for limit, want := range map[int]string{1: "c", 2: "b c", 3: "a b c", 9: "a b c"} {
		var keys []filesKey
		for name := range strings.FieldsSeq(want) {
			keys = append(keys, keyOfRow(manifest.Row{Name: name, Image: name}))
		}
		if got := w.rowKeys(limit); !slices.Equal(got, keys) {
			t.Errorf("the last %d rows are not %s", limit, want)
		}
	}
}

// digestOfRow returns the digest of one row.
func digestOfRow(row manifest.Row) string {
	var d rowDigest
	d.add(row)
	return d.String()
}

// Every setting of a row changes its digest, and nothing else does; only its files change its key.
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
		"sigma": func(r *manifest.Row) { r.Overrides.Sigma = new(item.Sigma(number)) }, "seed": func(r *manifest.Row) { r.Overrides.Seed = &seed },
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
		files := slices.Contains([]string{"image", "measurement", "mask", "kernel", "no files", "another unreadable line"}, name)
		if (keyOfRow(r) != keyOfRow(base())) != files {
			t.Errorf("%s: the key changes %t", name, !files)
		}
	}
}

// Windows double from the first size up to the largest.
func TestWindowLimits(t *testing.T) {
	t.Parallel()
	s := &Sharder{cfg: Config{First: 3, Items: 20}}
	for number, want := range []int{3, 6, 12, 20, 20} {
		if got := s.limit(number); got != want {
			t.Errorf("window %d has %d items, want %d", number, got, want)
		}
	}
	for _, c := range []Config{{First: 30, Items: 20}, {First: 20, Items: 20}} {
		if got := (&Sharder{cfg: c}).limit(1); got != 20 {
			t.Errorf("%d items", got)
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

// TestConfigFields names each field that is missing or out of range.
func TestConfigFields(t *testing.T) {
	t.Parallel()
	auto := manifest.Default()
	auto.Precision = manifest.PrecisionAuto
	complete := func() Config {
		return Config{Spec: manifest.Default(), Prior: &prior.Description{}, Sources: manifest.Files{}}
	}
	if err := complete().Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(c *Config){
		"Spec is missing": func(c *Config) { c.Spec = nil }, "Prior is missing": func(c *Config) { c.Prior = nil },
		"Spec has the precision auto": func(c *Config) { c.Spec = auto }, "Sources is missing": func(c *Config) { c.Sources = nil },
		"Items: -1 is negative": func(c *Config) { c.Items = -1 }, "First: -1 is negative": func(c *Config) { c.First = -1 },
		"Parallel: -1 is negative": func(c *Config) { c.Parallel = -1 }, "Delay: -1ns is negative": func(c *Config) { c.Delay = -1 },
	} {
		c := complete()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	c := complete().withDefaults()
	if c.Items != 4096 || c.First != 4096 || c.Parallel != 8 || c.Delay != 2*time.Second || c.Rows == nil || c.Wait == nil || c.Now == nil {
		t.Errorf("defaults %+v", c)
	}
}
