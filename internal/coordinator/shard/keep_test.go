package shard_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"

	"ddiff/internal/coordinator/shard"
	"ddiff/internal/tune"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// TestSplitRestrictsACampaign shards a dataset for each side of each fold: every image is a test image once, items have
// consecutive indices, and the sides are those of tune.SideOf.
func TestSplitRestrictsACampaign(t *testing.T) {
	t.Parallel()
	const rows, folds = 60, 3
	list := func(context.Context, manifest.Dataset, func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
		return func(yield func(manifest.Row, error) bool) {
			for i := range rows {
				row := manifest.Row{
					Index: i, Name: fmt.Sprintf("r%02d", i), Image: fmt.Sprintf("/data/%02d.png", i),
					ImageSHA256: fmt.Sprintf("%064x", i+1), Width: 64, Height: 64,
				}
				if !yield(row, nil) {
					return
				}
			}
		}
	}
	p := bundled(t)
	shardOf := func(split *manifest.Split, keep func(*item.Item) bool) (names []string) {
		c := spec(t, "/data")
		c.Methods, c.Split = []string{"ddiff", "ddiff_hqs"}, split
		s, err := shard.New(shard.Config{Spec: c, Prior: p, Sources: manifest.Files{}, Rows: list, Keep: keep, Items: 8})
		must(t, err)
		next := 0
		for w, err := range s.Windows(t.Context(), shard.Position{}) {
			must(t, err)
			if w.Item != next || w.Header.Items != len(w.Items)+len(w.Failed) {
				t.Fatalf("window %d begins at %d with %d items, want %d", w.Number, w.Item, w.Header.Items, next)
			}
			indices := map[int]bool{}
			for _, it := range w.Items {
				indices[it.Index] = true
				if !slices.Contains(names, it.Name) {
					names = append(names, it.Name)
				}
			}
			for i := range w.Items {
				if !indices[next+i] {
					t.Fatalf("window %d lacks the index %d", w.Number, next+i)
				}
			}
			next += w.Header.Items
		}
		slices.Sort(names)
		return names
	}
	all := shardOf(nil, nil)
	if len(all) != rows || !slices.Equal(all, shardOf(&manifest.Split{Share: 0.5}, nil)) {
		t.Fatalf("%d images without a restriction", len(all))
	}
	tested := map[string]int{}
	for k := range folds {
		split := manifest.Split{Folds: folds, Seed: 4, Run: manifest.SideTest, Fold: k + 1}
		test := shardOf(&split, nil)
		split.Run = manifest.SideTune
		tuned := shardOf(&split, nil)
		if len(test) == 0 || len(test)+len(tuned) != rows {
			t.Errorf("fold %d: %d and %d images", k, len(test), len(tuned))
		}
		for _, name := range test {
			tested[name]++
			if slices.Contains(tuned, name) {
				t.Errorf("fold %d: %s is on both sides", k, name)
			}
			var i int
			if _, err := fmt.Sscanf(name, "r%d", &i); err != nil {
				t.Fatal(err)
			}
			if side, err := tune.SideOf(split, tune.Image{Name: name, SHA256: fmt.Sprintf("%064x", i+1)}, k+1); side != manifest.SideTest || err != nil {
				t.Errorf("fold %d: %s is on the side %s", k, name, side)
			}
		}
	}
	for _, name := range all {
		if tested[name] != 1 {
			t.Errorf("%s is a test image %d times", name, tested[name])
		}
	}
	// An unreadable row has no digest, and fails on both sides.
	dir := writeImages(t, 12)
	images := 0
	for _, side := range []manifest.Side{manifest.SideTune, manifest.SideTest} {
		c := spec(t, dir)
		c.Split = &manifest.Split{Share: 0.5, Run: side}
		s, err := shard.New(shard.Config{Spec: c, Prior: p, Sources: manifest.Files{}})
		must(t, err)
		w := collect(t, s, shard.Position{})[0]
		if len(w.Failed) != 2 || w.Failed[0].Item.Name != "broken" {
			t.Errorf("%s: failed %+v", side, w.Failed)
		}
		images += len(w.Items) / 2
	}
	if images != 12 {
		t.Errorf("the sides have %d images, want 12", images)
	}
	odd := shardOf(nil, func(it *item.Item) bool { return it.Method == "ddiff" && it.Name[2]%2 == 1 })
	if len(odd) != rows/2 {
		t.Errorf("Keep left %d images, want %d", len(odd), rows/2)
	}
}
