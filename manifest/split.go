package manifest

import (
	"errors"
	"fmt"
	"path"
	"slices"
)

// Side is a part of a dataset that a [Split] makes.
type Side string

// The sides of a split.
const (
	SideAll  Side = "all"  // every image
	SideTune Side = "tune" // the images on which settings are chosen
	SideTest Side = "test" // the images on which the chosen settings are reported
)

// maxFolds is the largest number of folds of a split.
const maxFolds = 100

// Split divides the images of a dataset into a side on which settings are chosen and one on which they are reported. It
// does not change results. Share, Folds, and the lists of patterns exclude each other.
type Split struct {
	// Share is the expected share of the images on the tuning side, above 0 and below 1. A digest of Seed and the image's
	// file decides about each image alone. Default: 0.5, if neither Folds nor patterns are given.
	Share float64 `json:"share,omitempty"`
	// Tune and Test are patterns of image names, in the syntax of path.Match. With one list alone, all other images
	// are on the other side; with both, an image that matches neither is on no side.
	Tune []string `json:"tune,omitempty"`
	Test []string `json:"test,omitempty"`
	// Folds divides the images into so many parts, 2..100. Each part is the test side of the settings that were chosen on
	// all other parts. Default: 0, no folds.
	Folds int `json:"folds,omitempty"`
	// Seed keys the division by Share and Folds. Default: 0.
	Seed uint64 `json:"seed,omitempty"`
	// Run restricts a campaign to the images of one side. Default: all.
	Run Side `json:"run,omitempty"`
	// Fold is the part whose sides Run means, from 1 to Folds.
	Fold int `json:"fold,omitempty"`
}

// Check returns the first problem of a split with the name of its field.
func (s Split) Check() (field string, err error) {
	patterns, sides := len(s.Tune)+len(s.Test) > 0, []Side{SideAll, SideTune, SideTest}
	switch {
	case !(s.Share >= 0 && s.Share < 1):
		return "tune", fmt.Errorf("%v is out of range, want a share above 0 and below 1", max(s.Share, 0))
	case s.Share != 0 && s.Folds != 0:
		return "folds", errors.New("excludes a share; remove tune or folds")
	case patterns && (s.Share != 0 || s.Folds != 0):
		return "tune", errors.New("a list of patterns excludes a share and folds; give one of them")
	case s.Folds != 0 && (s.Folds < 2 || s.Folds > maxFolds):
		return "folds", fmt.Errorf("%d is out of range, want 2 to %d", s.Folds, maxFolds)
	case s.Run != "" && !slices.Contains(sides, s.Run):
		return "run", Unknown("value", string(s.Run), texts(sides))
	case s.Fold < 0 || s.Fold > s.Folds:
		return "fold", fmt.Errorf("%d is out of range, want 1 to the number of folds, %d", s.Fold, s.Folds)
	case s.Folds > 0 && s.Fold == 0 && (s.Run == SideTune || s.Run == SideTest):
		return "fold", fmt.Errorf("is missing; run: %s needs the number of a fold, 1 to %d", s.Run, s.Folds)
	}
	for _, list := range []struct {
		field    string
		patterns []string
	}{{"tune", s.Tune}, {"test", s.Test}} {
		for _, p := range list.patterns {
			if _, err := path.Match(p, ""); err != nil || p == "" {
				return list.field, fmt.Errorf("%q is not a pattern of names, as in chelsea or night/*", clip(p))
			}
		}
	}
	return "", nil
}
