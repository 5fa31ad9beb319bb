package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ddiff/manifest"
	"ddiff/queue"
)

// ErrRefused: what was asked of a campaign cannot be done; the message says why.
var ErrRefused = errors.New("refused")

// Order is how a campaign is to be run.
type Order struct {
	// Output is the prefix of the results below the cluster's store. Default: the id.
	Output string
	// Priority is the campaign's class. Default: normal.
	Priority manifest.Priority
	// Weight is its share within the class, 1..1000. Default: 1.
	Weight int
	// Canary is the number of items that run alone first; 0 for none.
	Canary int
}

// Submit puts a campaign on the board. Submitting the same one again changes nothing, and
// created is false.
func Submit(ctx context.Context, b *queue.Board, spec *manifest.Spec, o Order, now time.Time) (c *manifest.Campaign, created bool, err error) {
	c = &manifest.Campaign{
		Schema: manifest.RecordSchema, ID: spec.ID(), Spec: *spec, Output: o.Output, Priority: o.Priority, Weight: o.Weight,
		Canary: o.Canary, Submitted: now.UTC(), Wanted: manifest.WantRun, Phase: manifest.PhaseQueued,
	}
	if c.Output == "" {
		c.Output = c.ID
	}
	if c.Priority == "" {
		c.Priority = manifest.PriorityNormal
	}
	if c.Weight == 0 {
		c.Weight = 1
	}
	if err := c.Validate(); err != nil {
		return nil, false, fmt.Errorf("submit campaign: %w", err)
	}
	data, err := json.Marshal(c)
	if err != nil {
		return nil, false, fmt.Errorf("submit campaign: %w", err)
	}
	_, err = b.Create(ctx, manifest.KeyCampaignPrefix+c.ID, data)
	if errors.Is(err, queue.ErrRecordExists) {
		old, err := Read(ctx, b, c.ID)
		if err == nil && !same(old.Spec, *spec) {
			err = fmt.Errorf("submit campaign %s: %w: another campaign has this id; change its name", c.ID, ErrRefused)
		}
		return old, false, err
	}
	if err != nil {
		return nil, false, fmt.Errorf("submit campaign %s: %w", c.ID, err)
	}
	return c, true, nil
}

// same tells whether two specs make the same items; where results go, and how they are
// batched and tried, is no difference.
func same(a, b manifest.Spec) bool {
	a.Output, a.Batch, a.Attempts, b.Output, b.Batch, b.Attempts = "", 0, 0, "", 0, 0
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return errors.Join(err, err2) == nil && bytes.Equal(x, y)
}

// Want says what is wanted of a campaign. Wanting it twice is wanting it once.
func Want(ctx context.Context, b *queue.Board, id string, w manifest.Wanted) (*manifest.Campaign, error) {
	return Change(ctx, b, id, func(c *manifest.Campaign) error {
		switch {
		case c.Phase == manifest.PhaseFinished:
			return fmt.Errorf("%w: it has finished", ErrRefused)
		case c.Phase == manifest.PhaseCancelled && w == manifest.WantPause:
			return fmt.Errorf("%w: it is cancelled; resume it first", ErrRefused)
		case c.Wanted == w, c.Wanted == manifest.WantCancelNow && w == manifest.WantCancel:
			return errSame
		}
		c.Wanted = w
		return nil
	})
}

// Command hands the coordinator a command and waits for its answer, until ctx ends. While no
// coordinator leads, that takes as long as there is none.
func Command(ctx context.Context, b *queue.Board, id string, command manifest.Command) (manifest.Answer, error) {
	if command.ID == "" {
		command.ID = rand.Text()
	}
	given := func(c *manifest.Campaign) int {
		return slices.IndexFunc(c.Answered, func(a manifest.Answer) bool { return a.ID == command.ID })
	}
	c, err := Change(ctx, b, id, func(c *manifest.Campaign) error {
		waits := slices.ContainsFunc(c.Commands, func(other manifest.Command) bool { return other.ID == command.ID })
		if waits || given(c) >= 0 {
			return errSame
		}
		c.Commands = append(c.Commands, command)
		return nil
	})
	if err != nil {
		return manifest.Answer{}, err
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if i := given(c); i >= 0 {
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
		if c, err = Read(ctx, b, id); err != nil {
			return manifest.Answer{}, err
		}
	}
}

// Campaigns lists all campaigns with their last status, those submitted first first. A
// campaign that no coordinator has looked at yet has an empty status.
func Campaigns(ctx context.Context, b *queue.Board) ([]Standing, error) {
	keys, err := b.Keys(ctx, manifest.KeyCampaignPrefix)
	if err != nil {
		return nil, fmt.Errorf("list campaigns: %w", err)
	}
	var all []Standing
	for _, key := range keys {
		s, err := Look(ctx, b, strings.TrimPrefix(key, manifest.KeyCampaignPrefix))
		if errors.Is(err, queue.ErrNoRecord) {
			continue // it has just gone
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Standing) int { return a.Campaign.Submitted.Compare(b.Campaign.Submitted) })
	return all, nil
}

// Standing is a campaign and how it stands.
type Standing struct {
	Campaign *manifest.Campaign `json:"campaign"`
	Status   manifest.Status    `json:"status"`
}

// Look reads a campaign and its last status.
func Look(ctx context.Context, b *queue.Board, id string) (Standing, error) {
	c, err := Read(ctx, b, id)
	if err != nil {
		return Standing{}, err
	}
	s := Standing{Campaign: c, Status: manifest.Status{ID: id, Phase: c.Phase, Reason: c.Reason}}
	data, _, err := b.Get(ctx, manifest.KeyStatusPrefix+id)
	if errors.Is(err, queue.ErrNoRecord) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("read status of campaign %s: %w", id, err)
	}
	if err := json.Unmarshal(data, &s.Status); err != nil {
		return s, fmt.Errorf("read status of campaign %s: %w", id, err)
	}
	return s, nil
}

// Workers reads the last beats of all workers, by key.
func Workers(ctx context.Context, b *queue.Board) (map[string]manifest.Beat, error) {
	keys, err := b.Keys(ctx, manifest.KeyWorkerPrefix)
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	beats := map[string]manifest.Beat{}
	for _, key := range keys {
		data, _, err := b.Get(ctx, key)
		if errors.Is(err, queue.ErrNoRecord) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read worker %s: %w", key, err)
		}
		var beat manifest.Beat
		if err := json.Unmarshal(data, &beat); err != nil {
			return nil, fmt.Errorf("read worker %s: %w", key, err)
		}
		beats[key] = beat
	}
	return beats, nil
}
