package board

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ddiff/api"
	"ddiff/internal/failure"
	"ddiff/internal/record"
	"ddiff/manifest"
)

// ErrRefused: the campaign does not permit the request; the message states the reason.
var ErrRefused = failure.New(failure.Input, "refused")

// Order has the settings of a submission.
type Order = api.Order

// NewRecord makes the record of a submitted campaign.
func NewRecord(spec *manifest.Spec, o Order, now time.Time) *record.Campaign {
	id := spec.ID(o.Owner)
	return &record.Campaign{
		Schema: record.Schema, ID: id, Spec: *spec, Output: cmp.Or(o.Output, id),
		Priority: cmp.Or(o.Priority, record.PriorityNormal), Weight: cmp.Or(o.Weight, 1),
		Canary: o.Canary, Submitted: now.UTC(), Wanted: record.WantRun, Phase: record.PhaseQueued,
		Operators: o.Operators, Prior: record.PriorFile{SHA256: o.PriorSHA256}, Owner: o.Owner,
	}
}

// CheckSame returns ErrRefused if a submission differs from the campaign that has its id.
func CheckSame(old *record.Campaign, spec *manifest.Spec, o Order) error {
	if !sameItems(old.Spec, *spec) {
		return fmt.Errorf("submit campaign %s: %w: another campaign has this id; change its name", old.ID, ErrRefused)
	}
	return errors.Join(sameOperators(old, o.Operators), samePrior(old, o.PriorSHA256))
}

// sameItems reports whether two specs have the same items. Fields that change no item may differ.
func sameItems(a, b manifest.Spec) bool {
	for _, s := range []*manifest.Spec{&a, &b} {
		s.Output, s.Batch, s.Attempts, s.Notify, s.Pool, s.Budget, s.Deadline = "", 0, 0, "", "", manifest.Budget{}, ""
	}
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return errors.Join(err, err2) == nil && bytes.Equal(x, y)
}

// sameOperators returns ErrRefused if a campaign on the board has another operator file at one of the paths.
func sameOperators(c *record.Campaign, files []record.OperatorFile) error {
	for _, f := range files {
		for _, old := range c.Operators {
			if old.Path == f.Path && old.SHA256 != f.SHA256 {
				return fmt.Errorf("submit campaign %s: %w: it was submitted with another operator file %s, with the digest %.12s in place of %.12s; change its name",
					c.ID, ErrRefused, f.Path, old.SHA256, f.SHA256)
			}
		}
	}
	return nil
}

// samePrior returns ErrRefused if a campaign on the board has a prior with another digest. An empty digest is unknown.
func samePrior(c *record.Campaign, sha256 string) error {
	old := c.Prior.SHA256
	if sha256 == "" || old == "" || sha256 == old {
		return nil
	}
	return fmt.Errorf("submit campaign %s: %w: it was submitted with another prior, with the digest %.12s in place of %.12s; change its name",
		c.ID, ErrRefused, old, sha256)
}

// Wants returns the change of a record by which a person sets the wanted state. A finished campaign refuses it.
func Wants(w record.Wanted) func(c *record.Campaign) error {
	return func(c *record.Campaign) error {
		switch {
		case c.Phase == record.PhaseFinished:
			return fmt.Errorf("%w: the campaign has finished", ErrRefused)
		case c.Phase == record.PhaseCancelled && w == record.WantPause:
			return fmt.Errorf("%w: the campaign is cancelled; resume it first", ErrRefused)
		case c.Wanted == w, c.Wanted == record.WantCancelNow && w == record.WantCancel:
			return ErrUnchanged
		}
		if c.Wanted = w; c.Phase == record.PhasePaused && !WantsCancel(c) { // no longer because of a limit
			c.Reason = ""
		}
		return nil
	}
}
