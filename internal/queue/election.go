package queue

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ddiff/internal/lifecycle"
	"ddiff/internal/retry"
)

// KeyLeader is the key of the leading coordinator's record.
const KeyLeader = "leader.coordinator"

// ElectionConfig configures an election.
type ElectionConfig struct {
	// Name is this process's name, for people.
	Name string
	// TTL is the time after which the other processes replace a leader that has died. Default 10 s.
	TTL time.Duration
	// Fit reports whether this process may stand for election now. It is called often and must not block. Default: always.
	Fit func() bool
	// Logger receives every change. Default: no log.
	Logger *slog.Logger
	// Now is the clock; only differences of its times are used. Default time.Now.
	Now func() time.Time
}

// Election lets one of several processes lead at a time, by a record on the board that the leader renews. No two clocks
// are compared: a waiting process takes over when it has seen the record unchanged for TTL on its own clock, and a
// leader stops when two thirds of TTL have passed since the start of its last renewal.
//
// A leader that was suspended may act once more before it notices. Its writes must therefore be conditional, as
// Board.Update is, or idempotent.
type Election struct {
	cfg   ElectionConfig
	board *Board
	id    string
	since time.Time
}

// Leader is the leader's record.
type Leader struct {
	// Name is the leader's name; ID distinguishes two processes with the same name.
	Name string `json:"name"`
	ID   string `json:"id"`
	// Since is the start of the term, by the leader's clock.
	Since time.Time `json:"since"`
}

// NewElection opens the board, which Setup must have created, and returns an election.
func NewElection(ctx context.Context, nc *nats.Conn, cfg ElectionConfig) (*Election, error) {
	cfg.TTL = cmp.Or(cfg.TTL, 10*time.Second)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Fit == nil {
		cfg.Fit = func() bool { return true }
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.TTL < 100*time.Millisecond {
		return nil, fmt.Errorf("prepare election: %w: TTL is %v, at least 100ms is needed", ErrConfig, cfg.TTL)
	}
	board, err := OpenBoard(ctx, nc, cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("prepare election: %w", err)
	}
	return &Election{cfg: cfg, board: board.withTimeout(cfg.TTL), id: rand.Text()}, nil
}

// Run waits until this process leads, and calls lead with a context that ends when this process is no longer the
// leader. Then Run waits again, until ctx ends. lead must return soon after its context has ended. When lead returns by
// itself, Run resigns: after ErrStepDown it waits again, and otherwise it returns lead's error or nil. When ctx ends,
// Run resigns and returns nil.
func (e *Election) Run(ctx context.Context, lead func(ctx context.Context) error) error {
	for {
		revision, renewed, err := e.acquire(ctx)
		if err != nil {
			if ctx.Err() != nil {
				err = nil
			}
			return err
		}
		e.cfg.Logger.Info("leading", "name", e.cfg.Name)
		done, err := e.lead(ctx, revision, renewed, lead)
		if done {
			return err
		}
		e.cfg.Logger.Warn("no longer leading", "name", e.cfg.Name)
	}
}

// acquire waits until this process owns the record.
func (e *Election) acquire(ctx context.Context) (revision uint64, renewed time.Time, err error) {
	var seen uint64
	var since time.Time
	for ctx.Err() == nil {
		data, current, err := e.board.Get(ctx, KeyLeader)
		now := e.cfg.Now()
		switch {
		case !e.cfg.Fit():
			seen = 0 // when it is fit, it waits for a full TTL
		case errors.Is(err, ErrNoRecord):
			e.newTerm()
			if revision, err = e.board.Create(ctx, KeyLeader, e.record()); err == nil {
				return revision, now, nil
			}
		case err != nil:
		case current != seen && !e.owns(data):
			seen, since = current, now
		case now.Sub(since) >= e.cfg.TTL: // also for our own record, after a lost answer
			e.newTerm()
			if revision, err = e.board.Update(ctx, KeyLeader, e.record(), current); err == nil {
				return revision, now, nil
			}
		}
		for _, final := range []error{ErrClosed, ErrAccess, ErrNotReady} {
			if errors.Is(err, final) {
				return 0, time.Time{}, fmt.Errorf("election of a leader: %w", err)
			}
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, ErrNoRecord) {
			e.cfg.Logger.Warn("could not take part in the election, will retry", "reason", err)
		}
		if err := retry.Sleep(ctx, e.cfg.TTL/10); err != nil {
			return 0, time.Time{}, err
		}
	}
	return 0, time.Time{}, ctx.Err()
}

// lead runs the function lead and renews the record. It returns done when Run must end, with Run's error. While lead
// ends after the end of ctx, this process is still the leader.
func (e *Election) lead(ctx context.Context, revision uint64, renewed time.Time, lead func(context.Context) error) (done bool, err error) {
	leading := lifecycle.Go(ctx, lead)
	defer leading.Stop()
	for pause := e.cfg.TTL / 3; ; {
		select {
		case <-leading.Done():
			e.resign(ctx, revision)
			err := leading.Err()
			switch {
			case ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, ErrStepDown)):
				return true, nil
			case errors.Is(err, ErrStepDown):
				e.cfg.Logger.Warn("stepping down", "name", e.cfg.Name, "reason", err)
				return false, nil
			}
			return true, err
		case <-time.After(pause):
		}
		begin, limit := e.cfg.Now(), renewed.Add(2*e.cfg.TTL/3)
		next, err := e.renew(context.WithoutCancel(ctx), revision, limit.Sub(begin))
		if err == nil {
			revision, renewed, pause = next, begin, e.cfg.TTL/3
			continue
		}
		if !errors.Is(err, ErrConflict) && e.cfg.Now().Before(limit) {
			pause = e.cfg.TTL / 20
			continue
		}
		leading.Stop()
		e.cfg.Logger.Warn("could not renew the lead", "reason", err, "last", leading.Err())
		return false, nil
	}
}

// renew writes the record again, within left.
func (e *Election) renew(ctx context.Context, revision uint64, left time.Duration) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, left) // it has ended if nothing is left, and no request is sent
	defer cancel()
	next, err := e.board.Update(ctx, KeyLeader, e.record(), revision)
	if !errors.Is(err, ErrConflict) {
		return next, err
	}
	// The answer to an earlier attempt may have been lost.
	data, current, getErr := e.board.Get(ctx, KeyLeader)
	if getErr != nil || !e.owns(data) {
		return 0, err
	}
	return e.board.Update(ctx, KeyLeader, e.record(), current)
}

func (e *Election) owns(data []byte) bool {
	var l Leader
	return json.Unmarshal(data, &l) == nil && l.ID == e.id
}

// resign deletes the record, so that the other processes need not wait.
func (e *Election) resign(ctx context.Context, revision uint64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.TTL/3)
	defer cancel()
	if err := e.board.remove(ctx, KeyLeader, jetstream.WithExpectLastSequencePerSubject(revision)); err != nil {
		e.cfg.Logger.Warn("could not resign, the other processes wait for the TTL", "for", e.cfg.TTL, "reason", err)
	}
}

func (e *Election) newTerm() { e.since = e.cfg.Now().UTC() }

// record returns the content of the record. Each write gives it another revision.
func (e *Election) record() []byte {
	data, err := json.Marshal(Leader{Name: e.cfg.Name, ID: e.id, Since: e.since})
	if err != nil {
		panic(err) // unreachable: strings, numbers and a time
	}
	return data
}
