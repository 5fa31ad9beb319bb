package tune_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/tune"
	"ddiff/manifest"
)

// images makes n images with distinct digests.
func images(n int) []tune.Image {
	var out []tune.Image
	for i := range n {
		out = append(out, tune.Image{Name: fmt.Sprintf("photo%03d", i), SHA256: fmt.Sprintf("%064x", i*7919+1)})
	}
	return out
}

// TestNoImageIsOnBothSides divides random datasets, with copies of files under other names, in random orders.
func TestNoImageIsOnBothSides(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		list := images(20 + random.IntN(60))
		for range random.IntN(10) {
			list = append(list, tune.Image{Name: fmt.Sprintf("copy%d", random.IntN(1000)), SHA256: list[random.IntN(len(list))].SHA256})
		}
		split := manifest.Split{Seed: random.Uint64()}
		if random.IntN(2) == 0 {
			split.Folds = 2 + random.IntN(3)
		} else {
			split.Share = 0.3 + 0.4*random.Float64()
		}
		folds, err := tune.Divide(split, slices.Clone(list))
		if err != nil {
			continue // a side is too small
		}
		tests := map[string]int{}
		for k, f := range folds {
			side := map[string]manifest.Side{}
			for _, img := range f.Tune {
				side[img.SHA256] = manifest.SideTune
			}
			for _, img := range f.Test {
				if side[img.SHA256] != "" {
					t.Fatalf("%+v: image %s is twice in fold %d", split, img.Name, k)
				}
				side[img.SHA256] = manifest.SideTest
				tests[img.SHA256]++
			}
			for _, img := range list { // also of the copies
				if got, err := tune.SideOf(split, img, k+1); err != nil || got != side[img.SHA256] {
					t.Fatalf("%+v: SideOf(%s) = %q, %v; Divide has %q", split, img.Name, got, err, side[img.SHA256])
				}
			}
			if len(side) != len(f.Tune)+len(f.Test) {
				t.Fatalf("%d images in %d places", len(side), len(f.Tune)+len(f.Test))
			}
		}
		if split.Folds > 0 {
			for digest, n := range tests {
				if n != 1 {
					t.Fatalf("image %s is a test image %d times", digest, n)
				}
			}
			if len(tests) == 0 || len(tests) != len(folds[0].Tune)+len(folds[0].Test) {
				t.Fatalf("%d images are test images, want all %d", len(tests), len(folds[0].Tune)+len(folds[0].Test))
			}
		}
		random.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
		again, err := tune.Divide(split, list)
		if err != nil || fmt.Sprint(again) != fmt.Sprint(folds) {
			t.Fatalf("another order gives other sides, error %v", err)
		}
	}
}

// TestSideDependsOnTheImageAlone removes and renames images: the sides of the others stay.
func TestSideDependsOnTheImageAlone(t *testing.T) {
	t.Parallel()
	split := manifest.Split{Share: 0.5, Seed: 7}
	all := images(200)
	sides := map[string]manifest.Side{}
	tuned := 0
	for _, img := range all {
		side, err := tune.SideOf(split, img, 1)
		if err != nil {
			t.Fatal(err)
		}
		if sides[img.SHA256] = side; side == manifest.SideTune {
			tuned++
		}
	}
	if !(math.Abs(float64(tuned)-100) <= 4*math.Sqrt(200*0.25)) {
		t.Errorf("%d of 200 images are on the tuning side, want about 100", tuned)
	}
	part := slices.Clone(all[50:120])
	for i := range part {
		part[i].Name = "renamed/" + part[i].Name
	}
	folds, err := tune.Divide(split, part)
	if err != nil {
		t.Fatal(err)
	}
	for _, img := range folds[0].Tune {
		if sides[img.SHA256] != manifest.SideTune {
			t.Errorf("image %s has changed its side", img.Name)
		}
	}
	for _, img := range folds[0].Test {
		if sides[img.SHA256] != manifest.SideTest {
			t.Errorf("image %s has changed its side", img.Name)
		}
	}
	other := manifest.Split{Share: 0.5, Seed: 8}
	moved := 0
	for _, img := range all {
		if side, _ := tune.SideOf(other, img, 1); side != sides[img.SHA256] {
			moved++
		}
	}
	if moved < 60 {
		t.Errorf("another seed moves %d of 200 images, want about 100", moved)
	}
}

// TestSidesByName divides by patterns.
func TestSidesByName(t *testing.T) {
	t.Parallel()
	list := []tune.Image{{"cat", "a"}, {"dog", "b"}, {"night/1", "c"}, {"night/2", "d"}, {"sea", "e"}}
	names := func(images []tune.Image) string {
		var out []string
		for _, img := range images {
			out = append(out, img.Name)
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	for _, tt := range []struct {
		split      manifest.Split
		tune, test string
	}{
		{manifest.Split{Tune: []string{"night/*"}}, "night/1 night/2", "cat dog sea"},
		{manifest.Split{Test: []string{"cat", "s*"}}, "dog night/1 night/2", "cat sea"},
		{manifest.Split{Tune: []string{"cat", "dog"}, Test: []string{"night/*"}}, "cat dog", "night/1 night/2"},
	} {
		folds, err := tune.Divide(tt.split, slices.Clone(list))
		if err != nil {
			t.Errorf("%+v: %v", tt.split, err)
			continue
		}
		if got, want := names(folds[0].Tune)+" | "+names(folds[0].Test), tt.tune+" | "+tt.test; got != want {
			t.Errorf("%+v: %s, want %s", tt.split, got, want)
		}
	}
	for want, tt := range map[string]struct {
		split  manifest.Split
		images []tune.Image
	}{
		`image "cat" matches "c*" of tune and "cat" of test`:                 {manifest.Split{Tune: []string{"c*"}, Test: []string{"cat"}}, list},
		`the pattern "cow" matches no image; the dataset has "cat", "dog", `: {manifest.Split{Tune: []string{"cow", "cat", "dog"}}, list},
		`"photo003", "photo004" and 2 more`:                                  {manifest.Split{Tune: []string{"cow"}}, images(7)},
		`images "cat" and "copy" have equal files, but one is on the side tune, the other on test`: {
			manifest.Split{Tune: []string{"cat", "dog"}}, append(slices.Clone(list), tune.Image{"copy", "a"})},
		"1 images to tune and 0 to test, of 1 different images": {manifest.Split{}, []tune.Image{{"cat", "c"}, {"copy", "c"}}},
		"1 images to tune and 4 to test":                        {manifest.Split{Tune: []string{"cat"}}, list},
		"5 images to tune and 0 to test":                        {manifest.Split{Tune: []string{"*", "*/*"}}, list},
	} {
		if _, err := tune.Divide(tt.split, tt.images); !errors.Is(err, tune.ErrSides) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestOrderDependsOnDigests(t *testing.T) {
	t.Parallel()
	list := images(30)
	first := tune.Order(list, 1)
	reversed := slices.Clone(list)
	slices.Reverse(reversed)
	if !slices.Equal(first, tune.Order(reversed, 1)) {
		t.Error("the order of a race depends on the order of the dataset")
	}
	if slices.Equal(first, tune.Order(list, 2)) {
		t.Error("the order of a race does not depend on the seed")
	}
}
