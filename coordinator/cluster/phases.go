package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/queue"
)

// obey does what people want of the campaign.
func (r *runner) obey(ctx context.Context) error {
	for len(r.rec.Commands) > 0 {
		if err := r.answer(ctx, r.rec.Commands[0]); err != nil {
			return err
		}
	}
	if r.rec.Phase.Ended() {
		return errEnded
	}
	switch r.rec.Wanted {
	case manifest.WantCancel, manifest.WantCancelNow:
		return r.callOff(ctx)
	case manifest.WantPause:
		if r.rec.Phase == manifest.PhasePaused {
			return nil
		}
		if err := r.queue.Pause(ctx); err != nil {
			return fmt.Errorf("pause: %w", err)
		}
		return r.save(ctx, func(c *manifest.Campaign) { c.Phase = manifest.PhasePaused })
	}
	if r.rec.Phase != manifest.PhasePaused {
		return nil
	}
	if err := r.queue.Resume(ctx); err != nil {
		return fmt.Errorf("go on after a pause: %w", err)
	}
	return r.save(ctx, func(c *manifest.Campaign) {
		if c.Phase = manifest.PhaseQueued; c.Released {
			c.Phase = manifest.PhaseRunning
		}
	})
}

// advance takes the campaign to its next phase when it is ready for it.
func (r *runner) advance(ctx context.Context) error {
	switch r.rec.Phase {
	case manifest.PhaseQueued:
		switch {
		case r.rec.Released:
			return r.enterPhase(ctx, manifest.PhaseRunning)
		case r.stored == 0:
			return nil // the first window is on its way
		}
		first, err := r.firstWindow(ctx)
		if err != nil {
			return err
		}
		if len(first.Items) == 0 {
			return r.releaseAll(ctx) // nothing to check with: every row so far has failed
		}
		if err := r.publishPreflight(ctx, first.Items); err != nil {
			return err
		}
		return r.enterPhase(ctx, manifest.PhasePreflight)
	case manifest.PhasePreflight:
		switch {
		case r.checked == nil:
			return nil
		case r.checked.Failed != "":
			return rejection{fmt.Errorf("preflight: %s: %s", r.checked.Failed, r.checked.Reason)}
		case r.rec.Canary == 0:
			return r.releaseAll(ctx)
		}
		return r.enterPhase(ctx, manifest.PhaseCanary)
	case manifest.PhaseCanary:
		return r.advanceCanary(ctx)
	case manifest.PhaseRunning:
		if r.rec.Shards < r.stored {
			return r.releaseNext(ctx)
		}
		if r.whole && r.ledger.open == 0 {
			return r.finish(ctx, manifest.PhaseFinished)
		}
	}
	return nil
}

func (r *runner) enterPhase(ctx context.Context, p manifest.Phase) error {
	return r.save(ctx, func(c *manifest.Campaign) { c.Phase = p })
}

// firstWindow is the first window, from storage when it is not at hand.
func (r *runner) firstWindow(ctx context.Context) (*shard.Window, error) {
	if r.first == nil {
		w, err := r.window(ctx, shard.Key(r.id, 0))
		if err != nil {
			return nil, err
		}
		r.first = w
	}
	return r.first, nil
}

// releaseAll lets all items go.
func (r *runner) releaseAll(ctx context.Context) error {
	r.first, r.canary = nil, nil
	return r.save(ctx, func(c *manifest.Campaign) { c.Phase, c.Released = manifest.PhaseRunning, true })
}

// maxPreflight is the number of items of a preflight: one for each task and size, and no more.
// After them come some of other images, moreImages at most: one that is damaged must not stand
// for all.
const (
	maxPreflight = 32
	moreImages   = 3
)

// publishPreflight asks one worker to check the campaign.
func (r *runner) publishPreflight(ctx context.Context, items []manifest.Item) error {
	p := manifest.Preflight{Campaign: r.id}
	seen := map[string]bool{}
	for _, it := range items {
		if class := shard.Class(it) + " " + it.Method; !seen[class] && len(p.Items) < maxPreflight {
			seen[class] = true
			p.Items = append(p.Items, it)
			seen[it.Name] = true
		}
	}
	more := 0
	for _, it := range items {
		if !seen[it.Name] && more < moreImages {
			seen[it.Name] = true
			p.Items = append(p.Items, it)
			more++
		}
	}
	data, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("publish preflight: %w", err)
	}
	return r.send(ctx, []queue.Work{{Class: manifest.ClassPreflight, ID: manifest.IDPreflight, Payload: data, Round: r.rec.Round}})
}

// settlePreflight enters what a worker found; a worker that gave the preflight up tells so as
// it does with any item.
func (r *runner) settlePreflight(payload []byte) error {
	var answer struct {
		manifest.Checked
		Outcome manifest.Outcome `json:"outcome"`
	}
	if err := json.Unmarshal(payload, &answer); err != nil {
		return err
	}
	c := answer.Checked
	if answer.Outcome != "" && answer.Outcome != manifest.OutcomeDone {
		c.Failed = "worker"
	}
	if c.Failed == "" {
		for _, found := range c.Checks {
			r.log.Info("preflight", "check", found.Name, "found", found.Found, "worker", c.Worker)
		}
	}
	r.checked = &c
	return nil
}

// advanceCanary publishes the canary items, and looks at what became of them. The campaign is
// refused when one of them is dead, or none is done: what a single image is to blame for must
// not stop the others.
func (r *runner) advanceCanary(ctx context.Context) error {
	if r.canary == nil {
		first, err := r.firstWindow(ctx)
		if err != nil {
			return err
		}
		items := canaries(first.Items, r.rec.Canary)
		if _, err := r.publish(ctx, items, nil); err != nil {
			return err
		}
		for _, it := range items {
			r.canary = append(r.canary, it.ID)
		}
	}
	sound := 0
	var last string
	for _, id := range r.canary {
		switch r.ledger.state(id) {
		case pending:
			return nil
		case dead:
			return rejection{fmt.Errorf("canary: item %.12s is dead: %s", id, r.ledger.reason(id))}
		case failed:
			last = r.ledger.reason(id)
		case done:
			sound++
		}
	}
	if sound == 0 {
		return rejection{fmt.Errorf("canary: none of %d items could be restored, the last one: %s", len(r.canary), last)}
	}
	return r.releaseAll(ctx)
}

// canaries chooses n items, of as many tasks as there are.
func canaries(items []manifest.Item, n int) []manifest.Item {
	var out []manifest.Item
	taken := map[string]bool{}
	for round := 0; len(out) < n && round <= n; round++ {
		tasks := map[string]int{}
		for _, it := range items {
			if taken[it.ID] || tasks[it.Task] > 0 || len(out) == n {
				continue
			}
			tasks[it.Task]++
			taken[it.ID] = true
			out = append(out, it)
		}
	}
	return slices.Clip(out)
}

// callOff drops what was not begun, waits for what is under way unless that is to stop too,
// and ends the campaign.
func (r *runner) callOff(ctx context.Context) error {
	_, flight, err := r.queue.Depth(ctx)
	if err != nil {
		flight = 0 // there is no queue to wait for
	}
	if err := r.queue.Drop(ctx); err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	before := r.ledger.open
	patience := time.NewTimer(r.s.cfg.AckWait)
	defer patience.Stop()
	for r.rec.Wanted == manifest.WantCancel && before-r.ledger.open < int(flight) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-r.events:
			if err := r.enter(e); err != nil {
				return err
			}
			continue
		case <-r.wake:
			r.learn()
			continue
		case <-patience.C:
		}
		break
	}
	return r.finish(ctx, manifest.PhaseCancelled)
}

// finish writes the report and ends the campaign. An item whose outcome was lost on the way
// is found in storage first.
func (r *runner) finish(ctx context.Context, p manifest.Phase) error {
	if p == manifest.PhaseCancelled {
		if err := r.find(ctx); err != nil {
			return err
		}
	}
	if err := r.writeReport(ctx); err != nil {
		return err
	}
	if err := r.queue.Drop(ctx); err != nil {
		return fmt.Errorf("drop work: %w", err)
	}
	if err := r.save(ctx, func(c *manifest.Campaign) { c.Phase, c.Finished = p, r.s.cfg.Now().UTC() }); err != nil {
		return err
	}
	if r.rec.Phase != p {
		return errMoved
	}
	if err := r.tell(ctx, 0); err != nil {
		return err
	}
	return errEnded
}
