package board

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"ddiff/internal/failure"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/retry"
	"ddiff/storage"
)

// OwnerFolder has the names of the clusters that a store has belonged to. The last one owns it.
const OwnerFolder = "coordinators/cluster/"

// ErrOtherCluster: the store belongs to another cluster, whose campaigns this one would run, cancel and delete.
var ErrOtherCluster = failure.New(failure.Usage, "the store belongs to another cluster")

// Owner binds a store to a cluster, which is a NATS account: both have the same random name. Only a person moves a store to another
// cluster: silence never does, as a coordinator that is stopped, or cut off from its NATS servers, returns.
type Owner struct {
	Board *queue.Board
	Store storage.Store
	// Record is the record of the cluster that Claim writes to the board, without the name.
	Record record.Cluster
	// Coordinator names this process, for people.
	Coordinator string
	// TakeOver is the name of the cluster that a person takes the store from. Optional.
	TakeOver string
	// Interval is the time between two looks at the names.
	Interval time.Duration
	Now      func() time.Time
	Logger   *slog.Logger

	id    string       // of this term
	known atomic.Value // the last name on the board, which NATS may lose while this process runs
}

// owner is an object in OwnerFolder. It is created once, with the next number as its key.
type owner struct {
	ID string `json:"id"`
	// Former is the cluster that the store was taken from.
	Former string `json:"former,omitempty"`
	// Coordinator wrote this, At that time.
	Coordinator string    `json:"coordinator"`
	At          time.Time `json:"at"`

	number int
}

// Claim writes the record of the cluster to the board, and returns its name. A store without a name gets one. The error is ErrOtherCluster for
// the store of another cluster, unless TakeOver names that cluster; the store then gets a new name, so that a repeated Claim with the same
// TakeOver takes nothing back. After a crash, the next Claim completes it: the board has the name before the store.
func (o *Owner) Claim(ctx context.Context) (id string, err error) {
	for {
		shared, revision, err := o.shared(ctx)
		if err != nil {
			return "", err
		}
		o.id, _ = o.known.Load().(string)
		last, err := readOwner(ctx, o.Store)
		named := err != nil || last.ID == o.id // an outage of the store ends no term; Guard compares the names afterwards
		switch {
		case err != nil && o.id == "":
			o.Logger.Warn("waits for the name of the cluster in the store", "reason", err)
			if err := retry.Sleep(ctx, o.Interval); err != nil {
				return "", err
			}
			continue
		case named && o.id != "":
		case last.ID != "" && last.ID != o.TakeOver:
			return "", otherCluster(last)
		case last.ID != "" || o.id == "":
			named, o.id = false, strings.ToLower(rand.Text()[:8])
		}
		err = o.publish(ctx, shared, revision)
		if err == nil && !named {
			err = o.write(ctx, last)
		}
		if errors.Is(err, queue.ErrConflict) || errors.Is(err, queue.ErrRecordExists) || errors.Is(err, storage.ErrExists) {
			continue // another coordinator was first
		}
		return o.id, err
	}
}

// shared reads the record of the cluster on the board, and remembers its name.
func (o *Owner) shared(ctx context.Context) (c record.Cluster, revision uint64, err error) {
	c, revision, err = readCluster(ctx, o.Board)
	if c.ID != "" {
		o.known.Store(c.ID)
	}
	return c, revision, err
}

// publish replaces the last record of the cluster, of a revision; 0 means none. It warns if the last leader had another address of the store.
func (o *Owner) publish(ctx context.Context, last record.Cluster, revision uint64) error {
	if last.Store != "" && last.Store != o.Record.Store {
		o.Logger.Warn("the last leader had another address of the store; if it is another store, "+
			"restart this coordinator with the address of the last leader: its campaigns are not in this store",
			"store", o.Record.Store, "last", last.Store)
	}
	c := o.Record
	c.ID = o.id
	data, err := json.Marshal(c)
	switch {
	case err != nil:
	case revision == 0:
		_, err = o.Board.Create(ctx, record.KeyCluster, data)
	default:
		_, err = o.Board.Update(ctx, record.KeyCluster, data, revision)
	}
	if err != nil {
		return fmt.Errorf("publish the record of the cluster: %w", err)
	}
	o.known.Store(o.id)
	return nil
}

// Learn reads the name on the board until ctx ends. So a coordinator that has never led knows it after a loss of NATS' data.
func (o *Owner) Learn(ctx context.Context) error {
	for {
		if _, _, err := o.shared(ctx); err != nil && ctx.Err() == nil {
			o.Logger.Debug("could not read the name of the cluster", "reason", err)
		}
		if retry.Sleep(ctx, o.Interval) != nil {
			return nil //nolint:nilerr // the context has ended
		}
	}
}

// Guard compares the names until ctx ends, after Claim. It ends with ErrOtherCluster when the store was taken over. It names a store again
// that has lost its objects.
func (o *Owner) Guard(ctx context.Context) error {
	for {
		last, err := readOwner(ctx, o.Store)
		switch {
		case err == nil && last.ID == "":
			err = o.write(ctx, last)
		case err == nil && last.ID != o.id:
			return otherCluster(last)
		}
		if err != nil && ctx.Err() == nil {
			o.Logger.Debug("could not compare the name of the cluster with the store", "reason", err)
		}
		if retry.Sleep(ctx, o.Interval) != nil {
			return nil //nolint:nilerr // the context has ended
		}
	}
}

// write names the store after the last cluster. The error is storage.ErrExists if another coordinator was first.
func (o *Owner) write(ctx context.Context, last owner) error {
	data, err := json.Marshal(owner{ID: o.id, Former: last.ID, Coordinator: o.Coordinator, At: o.Now().UTC().Truncate(time.Second)})
	if err == nil {
		err = o.Store.Create(ctx, ownerKey(last.number+1), append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("name the cluster in the store: %w", err)
	}
	if last.ID != "" {
		o.Logger.Warn("took over the store from another cluster", "cluster", o.id, "former", last.ID)
	}
	return nil
}

func ownerKey(number int) string { return fmt.Sprintf("%s%06d.json", OwnerFolder, number) }

func otherCluster(last owner) error {
	verb := "named it"
	if last.Former != "" {
		verb = "took it over from " + last.Former
	}
	return fmt.Errorf("%w, %s: coordinator %s %s at %s; give this cluster a --store of its own, such as another prefix of the bucket, or, "+
		"if it replaces that cluster, as after a loss of all data of NATS, start ddiff coordinator with --take-over-store %s",
		ErrOtherCluster, last.ID, last.Coordinator, verb, last.At.Format(time.RFC3339), last.ID)
}

// readOwner reads the last name of a store, an empty one if it has none. Keys further below OwnerFolder are no names: workers may write some.
func readOwner(ctx context.Context, s storage.Store) (last owner, err error) {
	number := 0
	for info, err := range s.List(ctx, OwnerFolder) {
		if err != nil {
			return owner{}, fmt.Errorf("list the names of the cluster in %s: %w", OwnerFolder, err)
		}
		var n int
		if fmt.Sscanf(info.Key, OwnerFolder+"%d.json", &n); info.Key == ownerKey(n) { //nolint:errcheck // the key shows it
			number = max(number, n)
		}
	}
	if number == 0 {
		return owner{}, nil
	}
	data, err := s.Get(ctx, ownerKey(number))
	if err == nil {
		err = json.Unmarshal(data, &last)
	}
	if err == nil && last.ID == "" {
		err = errors.New("the id is missing")
	}
	if err != nil {
		return owner{}, fmt.Errorf("read the name of the cluster in %s: %w", ownerKey(number), err)
	}
	last.number = number
	return last, nil
}

// readCluster reads the record of the cluster on a board and its revision; an empty one if there is none that can be read.
func readCluster(ctx context.Context, b *queue.Board) (c record.Cluster, revision uint64, err error) {
	data, revision, err := b.Get(ctx, record.KeyCluster)
	if errors.Is(err, queue.ErrNoRecord) {
		return c, 0, nil
	}
	if err != nil {
		return c, 0, fmt.Errorf("read the record of the cluster: %w", err)
	}
	if json.Unmarshal(data, &c) != nil {
		return record.Cluster{}, revision, nil //nolint:nilerr // it is written again
	}
	return c, revision, nil
}

// CheckStore returns ErrOtherCluster if a store belongs to another cluster than a board, or to one while the board has no name yet: its
// campaigns are not on that board. A store without a name belongs to any cluster.
func CheckStore(ctx context.Context, b *queue.Board, s storage.Store) error {
	shared, _, err := readCluster(ctx, b)
	if err != nil {
		return err
	}
	last, err := readOwner(ctx, s)
	if err != nil || last.ID == "" || last.ID == shared.ID {
		return err
	}
	return otherCluster(last)
}
