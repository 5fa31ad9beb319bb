package board

import (
	"errors"
	"testing"

	"ddiff/manifest"
)

// Two campaigns with one operator path need one file; files of other paths say nothing.
func TestSameOperators(t *testing.T) {
	t.Parallel()
	c := &manifest.Campaign{Operators: []manifest.OperatorFile{{Path: "a", SHA256: "1"}, {Path: "b", SHA256: "2"}}}
	for _, file := range []struct {
		path, digest string
		refused      bool
	}{{"a", "1", false}, {"b", "2", false}, {"a", "2", true}, {"b", "1", true}, {"c", "1", false}} {
		err := sameOperators(c, []manifest.OperatorFile{{Path: file.path, SHA256: file.digest}})
		if errors.Is(err, ErrRefused) != file.refused || (err != nil) != file.refused {
			t.Errorf("%+v: %v", file, err)
		}
	}
}

// A second submission needs the same prior; a digest that is not known says nothing.
func TestSamePrior(t *testing.T) {
	t.Parallel()
	begun := &manifest.Campaign{Prior: manifest.PriorFile{SHA256: "1"}, PriorSHA256: "1"}
	for _, c := range []struct {
		campaign *manifest.Campaign
		digest   string
		refused  bool
	}{
		{begun, "1", false}, {begun, "2", true}, {begun, "", false},
		{&manifest.Campaign{PriorSHA256: "1"}, "2", true}, {&manifest.Campaign{PriorSHA256: "1"}, "1", false},
		{&manifest.Campaign{}, "2", false},
	} {
		err := samePrior(c.campaign, c.digest)
		if errors.Is(err, ErrRefused) != c.refused || (err != nil) != c.refused {
			t.Errorf("%+v, digest %q: %v", c.campaign, c.digest, err)
		}
	}
}
