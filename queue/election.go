package queue

import (
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

// KeyLeaderPrefix and the office are the key of the record of who leads.
const KeyLeaderPrefix = "leader."

// ElectionConfig describes an election.
type ElectionConfig struct {
	// Name is who runs, for people.
	Name string
	// Office is what for: one of all with the same office leads. Default "coordinator".
	Office string
	// TTL is how long a leader that is gone keeps the others waiting. Default 10 s.
	TTL time.Duration
	// Logger is told of every change. Default: nothing is logged.
	Logger *slog.Logger
	// Now is the clock; only its differences count. Default time.Now.
	Now func() time.Time
}

// Election lets one of several processes lead at a time, by a record on the board that the
// leader renews. No two clocks are compared: who waits takes over when he has seen the record
// unchanged for TTL, by his own clock, and who leads stops when two thirds of TTL have passed
// since he began his last renewal.
//
// A leader that was suspended may act once more before it notices. So what a leader writes
// must be conditional, as Board.Update is, or harmless when it is done twice.
type Election struct {
	cfg   ElectionConfig
	board *Board
	key   string
	id    string
	since time.Time
	count uint64
}

// Leader is the record of who leads.
type Leader struct {
	// Name is who leads, and ID tells two processes of one name apart.
	Name string `json:"name"`
	ID   string `json:"id"`
	// Since is when he began to lead, by his clock.
	Since time.Time `json:"since"`
	// Renewals counts how often the record was renewed.
	Renewals uint64 `json:"renewals"`
}

// NewElection prepares for an election on the board, which Setup must have made.
func NewElection(ctx context.Context, nc *nats.Conn, cfg ElectionConfig) (*Election, error) {
	if cfg.Office == "" {
		cfg.Office = "coordinator"
	}
	if cfg.TTL == 0 {
		cfg.TTL = 10 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	key := KeyLeaderPrefix + cfg.Office
	switch {
	case !validKey.MatchString(key):
		return nil, fmt.Errorf("prepare election: %w: Office %q", ErrBadName, cfg.Office)
	case cfg.TTL < 100*time.Millisecond:
		return nil, fmt.Errorf("prepare election: %w: TTL is %v, at least 100ms is needed", ErrConfig, cfg.TTL)
	}
	board, err := OpenBoard(ctx, nc, BoardLogger(cfg.Logger))
	if err != nil {
		return nil, fmt.Errorf("prepare election: %w", err)
	}
	return &Election{cfg: cfg, board: board.shortened(cfg.TTL), key: key, id: rand.Text()}, nil
}

// Run waits until this process leads, and calls lead with a context that ends when it does
// not lead any more. Then it waits again, until ctx ends. lead must return soon after its
// context has ended. When lead returns by itself, with or without an error, Run resigns and
// returns that error. At the end of ctx Run resigns and returns nil.
func (e *Election) Run(ctx context.Context, lead func(ctx context.Context) error) error {
	for {
		revision, renewed, err := e.acquire(ctx)
		if err != nil {
			if ctx.Err() != nil {
				err = nil
			}
			return err
		}
		e.cfg.Logger.Info("leads", "office", e.cfg.Office, "name", e.cfg.Name)
		done, err := e.hold(ctx, revision, renewed, lead)
		if done {
			return err
		}
		e.cfg.Logger.Warn("leads no more", "office", e.cfg.Office, "name", e.cfg.Name)
	}
}

// acquire waits until the record is this process's.
func (e *Election) acquire(ctx context.Context) (revision uint64, renewed time.Time, err error) {
	var seen uint64
	var since time.Time
	for ctx.Err() == nil {
		data, current, err := e.board.Get(ctx, e.key)
		now := e.cfg.Now()
		switch {
		case errors.Is(err, ErrNoRecord):
			e.begin()
			if revision, err = e.board.Create(ctx, e.key, e.record()); err == nil {
				return revision, now, nil
			}
		case err != nil:
		case current != seen && !e.mine(data):
			seen, since = current, now
		case now.Sub(since) >= e.cfg.TTL: // also when an answer was lost, and it is our own
			e.begin()
			if revision, err = e.board.Update(ctx, e.key, e.record(), current); err == nil {
				return revision, now, nil
			}
		}
		for _, final := range []error{ErrClosed, ErrAccess, ErrNotReady} {
			if errors.Is(err, final) {
				return 0, time.Time{}, fmt.Errorf("run for %s: %w", e.cfg.Office, err)
			}
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, ErrNoRecord) {
			e.cfg.Logger.Warn("could not run for the lead; tries again", "office", e.cfg.Office, "reason", err)
		}
		if err := retry.Sleep(ctx, e.cfg.TTL/10); err != nil {
			return 0, time.Time{}, err
		}
	}
	return 0, time.Time{}, ctx.Err()
}

// hold leads and renews. It returns done when Run is to end, with its error. While lead is on
// its way out after the end of ctx, the process is still the leader.
func (e *Election) hold(ctx context.Context, revision uint64, renewed time.Time, lead func(context.Context) error) (done bool, err error) {
	leading := lifecycle.Go(ctx, lead)
	defer leading.Stop()
	for pause := e.cfg.TTL / 3; ; {
		select {
		case <-leading.Done():
			e.resign(ctx, revision)
			if err := leading.Err(); ctx.Err() == nil || !errors.Is(err, context.Canceled) {
				return true, err
			}
			return true, nil
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
		e.cfg.Logger.Warn("could not stay the leader", "office", e.cfg.Office, "reason", err, "last", leading.Err())
		return false, nil
	}
}

// renew writes the record again, within left.
func (e *Election) renew(ctx context.Context, revision uint64, left time.Duration) (uint64, error) {
	if left <= 0 {
		return 0, context.DeadlineExceeded
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	e.count++
	next, err := e.board.Update(ctx, e.key, e.record(), revision)
	if !errors.Is(err, ErrConflict) {
		return next, err
	}
	// The answer to an earlier attempt may have been lost.
	data, current, getErr := e.board.Get(ctx, e.key)
	if getErr != nil || !e.mine(data) {
		return 0, err
	}
	return e.board.Update(ctx, e.key, e.record(), current)
}

// mine reports whether a record is this process's.
func (e *Election) mine(data []byte) bool {
	var l Leader
	return json.Unmarshal(data, &l) == nil && l.ID == e.id
}

// resign removes the record, so that nobody has to wait.
func (e *Election) resign(ctx context.Context, revision uint64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.TTL/3)
	defer cancel()
	if err := e.board.remove(ctx, e.key, jetstream.LastRevision(revision)); err != nil {
		e.cfg.Logger.Warn("could not resign; the others wait", "office", e.cfg.Office, "for", e.cfg.TTL, "reason", err)
	}
}

func (e *Election) begin() { e.since, e.count = e.cfg.Now().UTC(), 0 }

// record is the next text of the record; no two are equal.
func (e *Election) record() []byte {
	data, err := json.Marshal(Leader{Name: e.cfg.Name, ID: e.id, Since: e.since, Renewals: e.count})
	if err != nil {
		panic(err) // it has strings and numbers only
	}
	return data
}
