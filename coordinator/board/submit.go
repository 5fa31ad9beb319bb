package board

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"ddiff/api"
	"ddiff/manifest"
	"ddiff/queue"
)

// ErrRefused: the campaign does not permit the request; the message states the reason.
var ErrRefused = errors.New("refused")

// Order has the settings of a submission.
type Order = api.Order

// Submit writes a campaign to the board. It is idempotent: created is false if the campaign exists. If a different
// campaign has the same id, or a setting is out of range, the error is ErrRefused.
func Submit(ctx context.Context, b *queue.Board, spec *manifest.Spec, o Order, now time.Time) (c *manifest.Campaign, created bool, err error) {
	c = NewRecord(spec, o, now)
	if err := c.Validate(); err != nil {
		return nil, false, fmt.Errorf("submit campaign: %w: %w", ErrRefused, err)
	}
	ask(ctx, c, "submit")
	data, err := json.Marshal(c)
	if err != nil {
		return nil, false, fmt.Errorf("submit campaign: %w", err)
	}
	_, err = b.Create(ctx, manifest.KeyCampaignPrefix+c.ID, data)
	if errors.Is(err, queue.ErrRecordExists) {
		old, err := decide(ctx, b, c.ID, func(*manifest.Campaign) error { return ErrUnchanged })
		if err == nil && !sameItems(old.Spec, *spec) {
			err = fmt.Errorf("submit campaign %s: %w: another campaign has this id; change its name", c.ID, ErrRefused)
		}
		if err == nil {
			err = errors.Join(sameOperators(old, o.Operators), samePrior(old, o.PriorSHA256), samePool(old, spec.Pool))
		}
		return old, false, err
	}
	if err != nil {
		return nil, false, fmt.Errorf("submit campaign %s: %w", c.ID, err)
	}
	return c, true, nil
}

// NewRecord makes the record of a submitted campaign.
func NewRecord(spec *manifest.Spec, o Order, now time.Time) *manifest.Campaign {
	id := spec.ID()
	return &manifest.Campaign{
		Schema: manifest.RecordSchema, ID: id, Spec: *spec, Output: cmp.Or(o.Output, id),
		Priority: cmp.Or(o.Priority, manifest.PriorityNormal), Weight: cmp.Or(o.Weight, 1),
		Canary: o.Canary, Submitted: now.UTC(), Wanted: manifest.WantRun, Phase: manifest.PhaseQueued,
		Operators: o.Operators, PriorSHA256: o.PriorSHA256, Owner: o.Owner, RecordedBudget: spec.Budget,
	}
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
func sameOperators(c *manifest.Campaign, files []manifest.OperatorFile) error {
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
func samePrior(c *manifest.Campaign, sha256 string) error {
	old := cmp.Or(c.Prior.SHA256, c.PriorSHA256)
	if sha256 == "" || old == "" || sha256 == old {
		return nil
	}
	return fmt.Errorf("submit campaign %s: %w: it was submitted with another prior, with the digest %.12s in place of %.12s; change its name",
		c.ID, ErrRefused, old, sha256)
}

// samePool returns ErrRefused if a campaign on the board asks for another pool.
func samePool(c *manifest.Campaign, pool string) error {
	if c.Spec.Pool == pool {
		return nil
	}
	return fmt.Errorf("submit campaign %s: %w: it was submitted with the pool %q in place of %q; delete the campaign, then submit it again: its results remain",
		c.ID, ErrRefused, c.Spec.Pool, pool)
}

// Want sets the wanted state of a campaign. It is idempotent. A finished campaign refuses it.
func Want(ctx context.Context, b *queue.Board, id string, w manifest.Wanted) (*manifest.Campaign, error) {
	return decide(ctx, b, id, func(c *manifest.Campaign) error {
		switch {
		case c.Phase == manifest.PhaseFinished:
			return fmt.Errorf("%w: the campaign has finished", ErrRefused)
		case c.Phase == manifest.PhaseCancelled && w == manifest.WantPause:
			return fmt.Errorf("%w: the campaign is cancelled; resume it first", ErrRefused)
		case c.Wanted == w, c.Wanted == manifest.WantCancelNow && w == manifest.WantCancel:
			return ErrUnchanged
		}
		c.Wanted = w
		ask(ctx, c, string(w))
		return nil
	})
}

// SetBudget replaces the budget of a campaign that has not finished. It is idempotent.
func SetBudget(ctx context.Context, b *queue.Board, id string, limits manifest.Budget) (*manifest.Campaign, error) {
	if field, err := limits.Check(); err != nil {
		return nil, fmt.Errorf("change the budget of campaign %s: %w: %s: %w", id, ErrRefused, field, err)
	}
	return decide(ctx, b, id, func(c *manifest.Campaign) error {
		switch {
		case c.Phase == manifest.PhaseFinished:
			return fmt.Errorf("%w: the campaign has finished", ErrRefused)
		case c.Spec.Budget == limits:
			return ErrUnchanged
		}
		c.Spec.Budget = limits
		ask(ctx, c, "budget")
		return nil
	})
}

// AwaitStored waits until a coordinator has stored the wanted state and the budget of a record that Want or SetBudget has returned: they
// then survive the loss of the board. It returns the newest record, at once if no coordinator has to act on it. The errors are that of ctx at its
// end, ErrReplaced, and ErrRefused if the coordinator has paused the campaign at once, with its reason.
func AwaitStored(ctx context.Context, b *queue.Board, c *manifest.Campaign) (*manifest.Campaign, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	wanted := c.Wanted
	for Active(c) && !Recorded(c) {
		select {
		case <-ctx.Done():
			return c, ctx.Err()
		case <-tick.C:
		}
		next, err := Read(ctx, b, c.ID)
		if errors.Is(err, queue.ErrNoRecord) { // deleted, or not restored yet
			return c, replaced(wanted, c.ID)
		}
		if err != nil {
			return c, err
		}
		if c = next; c.Wanted != wanted && !c.Phase.Ended() {
			if c.Reason != "" {
				return c, fmt.Errorf("%s campaign %s: %w: %s", wanted, c.ID, ErrRefused, c.Reason)
			}
			return c, replaced(wanted, c.ID)
		}
	}
	return c, nil
}

func replaced(wanted manifest.Wanted, id string) error {
	return fmt.Errorf("%s campaign %s: %w; compare ddiff status %s and repeat the command", wanted, id, ErrReplaced, id)
}

// ErrReplaced: a wanted state was replaced before it was stored.
var ErrReplaced = errors.New("another command, the deletion of the campaign, or the loss of the board has replaced the request")

// Recorded reports whether the store has the wanted state and the budget of a campaign.
func Recorded(c *manifest.Campaign) bool {
	return cmp.Or(c.Recorded, manifest.WantRun) == c.Wanted && c.RecordedBudget == c.Spec.Budget
}

// Command sends a command to the leading coordinator and waits for its answer until ctx ends. The command stays on the
// board while no coordinator leads.
func Command(ctx context.Context, b *queue.Board, id string, command manifest.Command) (manifest.Answer, error) {
	if command.ID == "" {
		command.ID = rand.Text()
	}
	answer := func(c *manifest.Campaign) int {
		return slices.IndexFunc(c.Answered, func(a manifest.Answer) bool { return a.ID == command.ID })
	}
	send := func(c *manifest.Campaign) error {
		sent := slices.ContainsFunc(c.Commands, func(other manifest.Command) bool { return other.ID == command.ID })
		if sent || answer(c) >= 0 {
			return ErrUnchanged
		}
		c.Commands = append(c.Commands, command)
		ask(ctx, c, command.Verb)
		return nil
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := Update(ctx, b, id, send) // again, if the board was lost and restored
		if err != nil {
			return manifest.Answer{}, err
		}
		if i := answer(c); i >= 0 {
			a := c.Answered[i]
			if a.Error != "" {
				return a, fmt.Errorf("%s campaign %s: %w: %s", command.Verb, id, ErrRefused, a.Error)
			}
			return a, nil
		}
		select {
		case <-ctx.Done():
			return manifest.Answer{}, fmt.Errorf("%s campaign %s: wait for a coordinator: %w", command.Verb, id, ctx.Err())
		case <-tick.C:
		}
	}
}
