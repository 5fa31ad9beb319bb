package tune

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"ddiff/manifest"
	"ddiff/restore/item"
)

// DefaultShare is the share of the tuning side of a split that states none.
const DefaultShare = 0.5

// The smallest numbers of images of a side: an interval of a difference needs two.
const (
	minTune = 2
	minTest = 1
)

// Image is one image of a dataset. Rows with equal files are one image.
type Image struct {
	// Name is the name of the row, of several rows the first in the order of names.
	Name string `json:"name"`
	// SHA256 is the lower-case hex digest of the image's file, without a truth that of the stored measurement.
	SHA256 string `json:"sha256"`
}

// Fold has the two sides of a division, each in the order of digests.
type Fold struct {
	Tune []Image `json:"tune"`
	Test []Image `json:"test"`
}

// Divide returns the sides of each fold: one fold, or as many as the split has. The images of equal digests are one. An
// image is never on both sides of a fold. A share and folds decide about each image by its digest alone, without regard to
// names, other images and order.
//
// The error wraps [ErrSides] and states a remedy: names of one image are on different sides, a pattern matches nothing, or a
// side has too few images (two to tune, one to test).
func Divide(s manifest.Split, images []Image) ([]Fold, error) {
	folds := make([]Fold, max(1, s.Folds))
	sides := map[string]Image{} // the first name by digest
	matched := map[string]bool{}
	slices.SortFunc(images, func(a, b Image) int {
		return cmp.Or(strings.Compare(a.SHA256, b.SHA256), strings.Compare(a.Name, b.Name))
	})
	for _, img := range images {
		own, err := sideOf(s, img, 1, matched)
		if err != nil {
			return nil, err
		}
		if first, known := sides[img.SHA256]; known {
			other, err := sideOf(s, first, 1, matched)
			if err != nil {
				return nil, err
			}
			if own != other {
				return nil, fmt.Errorf("%w: images %q and %q have equal files, but one is on the side %s, the other on %s; name both in one list",
					ErrSides, first.Name, img.Name, name(other), name(own))
			}
			continue
		}
		sides[img.SHA256] = img
		for k := range folds {
			switch side, _ := sideOf(s, img, k+1, matched); side {
			case manifest.SideTune:
				folds[k].Tune = append(folds[k].Tune, img)
			case manifest.SideTest:
				folds[k].Test = append(folds[k].Test, img)
			}
		}
	}
	for _, p := range slices.Concat(s.Tune, s.Test) {
		if !matched[p] {
			return nil, fmt.Errorf("%w: the pattern %q matches no image; the dataset has %s", ErrSides, p, someNames(images))
		}
	}
	for k, f := range folds {
		if len(f.Tune) < minTune || len(f.Test) < minTest {
			where := ""
			if s.Folds > 0 {
				where = fmt.Sprintf(" of fold %d", k+1)
			}
			return nil, fmt.Errorf("%w: %d images to tune and %d to test%s, of %d different images; want at least %d and %d: "+
				"add images, choose another seed, or name the images of a side", ErrSides, len(f.Tune), len(f.Test), where, len(sides), minTune, minTest)
		}
	}
	return folds, nil
}

// shownNames is the number of images that an error names.
const shownNames = 5

// someNames lists the first names of images, and the number of the others.
func someNames(images []Image) string {
	var names []string
	for _, img := range images {
		names = append(names, strconv.Quote(img.Name))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	text := strings.Join(names[:min(len(names), shownNames)], ", ")
	if more := len(names) - shownNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func name(s manifest.Side) string { return cmp.Or(string(s), "none") }

// SideOf returns the side of an image in a fold from 1, or "" if it is on neither. It agrees with [Divide]. The error
// wraps [ErrSides]: the image matches patterns of both sides.
func SideOf(s manifest.Split, img Image, fold int) (manifest.Side, error) {
	return sideOf(s, img, fold, map[string]bool{})
}

func sideOf(s manifest.Split, img Image, fold int, matched map[string]bool) (manifest.Side, error) {
	if len(s.Tune)+len(s.Test) > 0 {
		return sideByName(s, img.Name, matched)
	}
	at := position(s.Seed, cmp.Or(img.SHA256, "name "+img.Name))
	test := at >= cmp.Or(s.Share, DefaultShare)
	if s.Folds > 0 {
		test = int(at*float64(s.Folds)) == fold-1
	}
	if test {
		return manifest.SideTest, nil
	}
	return manifest.SideTune, nil
}

func sideByName(s manifest.Split, image string, matched map[string]bool) (manifest.Side, error) {
	find := func(patterns []string) (found string) {
		for _, p := range patterns {
			if ok, err := path.Match(p, image); ok && err == nil {
				matched[p] = true
				found = cmp.Or(found, p)
			}
		}
		return found
	}
	tuned, tested := find(s.Tune), find(s.Test)
	switch {
	case tuned != "" && tested != "":
		return "", fmt.Errorf("%w: image %q matches %q of tune and %q of test; an image must not be on both sides", ErrSides, image, tuned, tested)
	case tuned != "" || len(s.Tune) == 0 && tested == "":
		return manifest.SideTune, nil
	case tested != "" || len(s.Test) == 0:
		return manifest.SideTest, nil
	}
	return "", nil
}

// position maps a key to [0, 1) uniformly.
func position(seed uint64, key string) float64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "ddiff split 1\n%d\n%s", seed, key))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}

// Order sorts images into the order of a race, which depends on the seed and the digests only.
func Order(images []Image, seed uint64) []Image {
	out := slices.Clone(images)
	key := func(i Image) float64 { return position(seed, "order "+i.SHA256) }
	slices.SortFunc(out, func(a, b Image) int { return cmp.Or(cmp.Compare(key(a), key(b)), strings.Compare(a.SHA256, b.SHA256)) })
	return out
}

// ImageOf returns the image of an item.
func ImageOf(it *item.Item) Image {
	img := Image{Name: it.Name}
	switch {
	case it.Image != nil:
		img.SHA256 = it.Image.SHA256
	case it.Measurement != nil:
		img.SHA256 = it.Measurement.SHA256
	}
	return img
}
