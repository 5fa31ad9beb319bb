package board

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ddiff/internal/retry"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// OwnerKey is the storage key of the name of the cluster that a store belongs to.
const OwnerKey = "coordinators/cluster.json"

// ErrOtherCluster: the store belongs to another cluster, whose campaigns this one would run, cancel and delete.
var ErrOtherCluster = errors.New("the store belongs to another cluster")

// ownerBeats is the number of intervals without a sign of life after which a cluster without a board takes a store over.
const ownerBeats = 3

// Owner binds a store to a cluster, which is a NATS account: both have the same random id.
type Owner struct {
	Board *queue.Board
	Store storage.Store
	// Coordinator names this process, for people.
	Coordinator string
	// Interval is the time between two signs of life in the store.
	Interval time.Duration
	Logger   *slog.Logger

	id string
}

// owner is the object at OwnerKey.
type owner struct {
	ID string `json:"id"`
	// Coordinator led last, Beats counts its signs of life. Ended: it has ended its term.
	Coordinator string `json:"coordinator"`
	Beats       int    `json:"beats"`
	Ended       bool   `json:"ended,omitempty"`
}

// Claim returns the id of the cluster. A store without an id gets one. A cluster whose board knows no id, because NATS has lost its
// data or is new, takes a store over if no coordinator of its last cluster shows a sign of life. The error is ErrOtherCluster for the
// store of another cluster.
func (o *Owner) Claim(ctx context.Context) (id string, err error) {
	shared, err := readCluster(ctx, o.Board)
	if err != nil {
		return "", err
	}
	if shared.ID != "" {
		o.id = shared.ID
	}
	for {
		last, err := readOwner(ctx, o.Store)
		if errors.Is(err, storage.ErrNotFound) {
			if o.id == "" {
				o.id = rand.Text()
			}
			if err = o.write(ctx, owner{}, o.Store.Create); errors.Is(err, storage.ErrExists) {
				continue // by another cluster
			}
			return o.id, err
		}
		switch {
		case err != nil && o.id != "":
			return o.id, nil // an outage of the store ends no term; Keep compares the names afterwards
		case err != nil:
			o.Logger.Warn("waits for the name of the cluster in the store", "reason", err)
			if err := retry.Sleep(ctx, o.Interval); err != nil {
				return "", err
			}
			continue
		case o.id != "":
			return o.id, o.compare(last)
		}
		if err := o.awaitEnd(ctx, last); err != nil {
			return "", err
		}
		o.id = rand.Text()
		o.Logger.Warn("takes over the store of a cluster that has ended", "cluster", last.ID, "coordinator", last.Coordinator)
		return o.id, o.write(ctx, owner{}, o.Store.Put)
	}
}

// awaitEnd returns ErrOtherCluster if a coordinator of another cluster uses the store. No two clocks are compared.
func (o *Owner) awaitEnd(ctx context.Context, last owner) error {
	for range ownerBeats {
		if last.Ended {
			return nil
		}
		if err := retry.Sleep(ctx, o.Interval); err != nil {
			return err
		}
		now, err := readOwner(ctx, o.Store)
		if err != nil {
			return err
		}
		if now != last && !now.Ended {
			return otherCluster(now)
		}
	}
	return nil
}

func (o *Owner) compare(last owner) error {
	if last.ID == o.id {
		return nil
	}
	return otherCluster(last)
}

func otherCluster(last owner) error {
	return fmt.Errorf("%w (%.8s), which coordinator %s led last; give this cluster a --store of its own, such as another prefix of the bucket, or, "+
		"if that cluster is gone for good, remove %s from the store", ErrOtherCluster, last.ID, last.Coordinator, OwnerKey)
}

// Keep shows signs of life in the store until ctx ends. It ends with ErrOtherCluster when another cluster has taken the store over.
func (o *Owner) Keep(ctx context.Context) error {
	last := owner{}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if now, err := readOwner(ctx, o.Store); err == nil && now.ID == o.id {
			now.Ended = true
			_ = o.write(ctx, now, o.Store.Put) // otherwise another cluster waits a little
		}
	}()
	for {
		now, err := readOwner(ctx, o.Store)
		if err == nil {
			if err := o.compare(now); err != nil {
				return err
			}
			last = now
		}
		if err == nil || errors.Is(err, storage.ErrNotFound) {
			last.Beats++
			last.Ended = false
			err = o.write(ctx, last, o.Store.Put)
		}
		if err != nil && ctx.Err() == nil {
			o.Logger.Debug("could not show a sign of life in the store", "reason", err)
		}
		if retry.Sleep(ctx, o.Interval) != nil {
			return nil
		}
	}
}

func (o *Owner) write(ctx context.Context, last owner, write func(context.Context, string, []byte) error) error {
	last.ID, last.Coordinator = o.id, o.Coordinator
	data, err := json.Marshal(last)
	if err == nil {
		err = write(ctx, OwnerKey, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("name the cluster in the store: %w", err)
	}
	return nil
}

func readOwner(ctx context.Context, s storage.Store) (owner, error) {
	var last owner
	data, err := s.Get(ctx, OwnerKey)
	if err == nil {
		err = json.Unmarshal(data, &last)
	}
	if err != nil {
		return owner{}, fmt.Errorf("read the name of the cluster in %s: %w", OwnerKey, err)
	}
	return last, nil
}

// readCluster reads the record of the cluster on a board, an empty one if there is none that can be read.
func readCluster(ctx context.Context, b *queue.Board) (c manifest.Cluster, err error) {
	data, _, err := b.Get(ctx, manifest.KeyCluster)
	if errors.Is(err, queue.ErrNoRecord) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("read the record of the cluster: %w", err)
	}
	if json.Unmarshal(data, &c) != nil {
		return manifest.Cluster{}, nil //nolint:nilerr // it is written again
	}
	return c, nil
}

// CheckStore returns ErrOtherCluster if a board and a store belong to different clusters. A board or a store without a name belongs to
// any cluster.
func CheckStore(ctx context.Context, b *queue.Board, s storage.Store) error {
	shared, err := readCluster(ctx, b)
	if err != nil || shared.ID == "" {
		return err
	}
	last, err := readOwner(ctx, s)
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return (&Owner{id: shared.ID}).compare(last)
}
