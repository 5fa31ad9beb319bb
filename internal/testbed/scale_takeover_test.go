package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"ddiff/internal/coordinator/shard"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/restore/item"
	"ddiff/storage"
)

const (
	// unsettledItems is the number of items without an outcome at the takeover.
	unsettledItems = 1000
	// outcomesInFlight is the number of outcomes that are published at a time.
	outcomesInFlight = 256
	// takeoverPoll is the interval at which the board is read.
	takeoverPoll = 20 * time.Millisecond
)

// leaderTakeover measures a takeover after the outcomes of o.rows items: the leader is killed, and a campaign is submitted. The
// time is from the begin of the new leader's term until its status of the old campaign has all outcomes, and a worker
// has leased and answered the preflight of the new campaign. The outcomes are published by this process; workers,
// coordinators, JetStream and store are real.
func leaderTakeover(ctx context.Context, o scaleOptions, dir string) (t handover) {
	dir = filepath.Join(dir, "takeover")
	c := try(start(ctx, o, dir))
	defer o.discard(c, dir)
	try(c.AddWorker(ctx, "--simulate", "24h", "--simulate-workers", "2"))
	file := try(writeCampaign(dir, "history", o.rows))
	id := try(submitCampaign(ctx, c, file))
	check(awaitComplete(ctx, c, id, o.rows))
	nc := try(c.NATS.connect(ctx, RoleCoordinator))
	defer nc.Close()
	settled := try(publishOutcomes(ctx, c, nc, id, max(o.rows-unsettledItems, 1)))
	board := try(queue.OpenBoard(ctx, nc, nil))
	var st record.Status
	check(awaitBoard(ctx, board, record.KeyStatusPrefix+id, &st, func() bool { return st.Counts.Done == settled }))
	leader := try(c.Leader(ctx))
	// The workers hold an item each. Others wait for the next campaign.
	try(c.Output(ctx, "pause", id))
	var rec record.Campaign
	check(awaitBoard(ctx, board, record.KeyCampaignPrefix+id, &rec, func() bool { return rec.Phase == record.PhasePaused }))
	try(c.AddWorker(ctx, "--simulate", "24h", "--simulate-workers", "2"))
	standby := try(c.AddCoordinator(ctx))
	before := try(processorTime(standby.PID()))
	file = try(writeCampaign(dir, "next", 4))
	killed := time.Now()
	leader.Kill()
	next := try(submitCampaign(ctx, c, file))
	var l queue.Leader
	check(awaitBoard(ctx, board, queue.KeyLeader, &l, func() bool { return l.Name != leader.Name }))
	t.elected = time.Since(killed)
	check(awaitBoard(ctx, board, record.KeyStatusPrefix+id, &st, func() bool { return st.Counts.Done == settled && st.At.After(l.Since) }))
	check(awaitBoard(ctx, board, record.KeyCampaignPrefix+next, &rec, func() bool { return rec.Phase == record.PhaseRunning }))
	t.answers = time.Since(killed) - t.elected
	t.processor = try(processorTime(standby.PID())) - before
	t.memory = try(peakMemory(standby.PID()))
	return t
}

// handover is how a standby took over: the time from the death of the leader to the lead, and from there to its answers; the standby's
// processor time for both, and the largest resident memory in bytes.
type handover struct {
	elected, answers, processor time.Duration
	memory                      int64
}

func (t handover) String() string {
	return fmt.Sprintf("lead_s=%.1f answers_s=%.1f cpu_s=%.1f rss_mib=%d", t.elected.Seconds(), t.answers.Seconds(), t.processor.Seconds(), t.memory>>20)
}

// TestAttackTakeover kills a leader after a million outcomes.
func TestAttackTakeover(t *testing.T) {
	onlyBy(t, "make attacks", "DDIFF_ATTACKS")
	o := scaleOptions{rows: 1_000_000, servers: 1, program: program, out: t.Output()}
	took, err := caughtTakeover(t.Context(), o, t.TempDir())
	must(t, err)
	t.Logf("outcomes=%d %v", o.rows, took)
	if took.processor > 30*time.Second {
		t.Errorf("the standby used a processor for %v", took.processor)
	}
}

// caughtTakeover is leaderTakeover with an error.
func caughtTakeover(ctx context.Context, o scaleOptions, dir string) (t handover, err error) {
	defer caught(&err)
	return leaderTakeover(ctx, o, dir), nil
}

// publishOutcomes publishes outcomes of n items of a campaign, and returns their number.
func publishOutcomes(ctx context.Context, c *Cluster, nc *queue.Conn, id string, n int) (int, error) {
	store, err := storage.Open(ctx, c.Store(), storage.Options{ReadOnly: true})
	if err != nil {
		return 0, err
	}
	defer store.Close() //nolint:errcheck // it was only read
	q, err := queue.Attach(ctx, nc, queue.Config{Campaign: id})
	if err != nil {
		return 0, err
	}
	event, err := json.Marshal(item.Event{Outcome: item.OutcomeDone, Finished: time.Now().UTC()})
	if err != nil {
		return 0, err
	}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(outcomesInFlight)
	published := 0
	for info, err := range store.Store.List(ctx, shard.Prefix(id)) {
		if err != nil {
			return 0, errors.Join(err, group.Wait())
		}
		w, err := shard.Read(ctx, store.Store, info.Key)
		if err != nil {
			return 0, errors.Join(err, group.Wait())
		}
		for _, it := range w.Items[:min(len(w.Items), n-published)] {
			published++
			group.Go(func() error { return q.PublishResult(inner, it.ID, 0, event) })
		}
	}
	return published, group.Wait()
}

// awaitBoard reads a record into v until reached reports true.
func awaitBoard(ctx context.Context, board *queue.Board, key string, v any, reached func() bool) error {
	tick := time.NewTicker(takeoverPoll)
	defer tick.Stop()
	for {
		data, _, err := board.Get(ctx, key)
		if err == nil {
			err = json.Unmarshal(data, v)
		}
		switch {
		case err == nil && reached():
			return nil
		case err != nil && !errors.Is(err, queue.ErrNoRecord):
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for record %s: %w", key, ctx.Err())
		case <-tick.C:
		}
	}
}
