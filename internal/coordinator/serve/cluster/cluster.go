// Package cluster answers the requests of package serve from the board, the queue and the store of a cluster.
//
// Verbs go to the leader, so that people may ask any coordinator. What is read for lists of items is in memory, see views.go. A verb of users is a
// method here that a route calls.
package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"ddiff/api"
	"ddiff/internal/coordinator/archive"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/index"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/redact"
	"ddiff/manifest"
	"ddiff/storage"
)

// Config describes a Cluster. Fields without a stated default are required.
type Config struct {
	Board *queue.Board
	// Inspect opens the queue of a campaign, and creates nothing.
	Inspect func(campaign string) (*queue.Queue, error)
	// Catalogue has the methods and operators that campaigns may name.
	Catalogue manifest.Catalogue
	// Store is the cluster's store.
	Store storage.Store
	// Rows reads datasets to count their items. Default: nothing is counted.
	Rows shard.Rows
	// Usage returns the sizes of the queue's streams, Server the address of the NATS server. Default: unknown.
	Usage  func(ctx context.Context) ([]queue.StreamUsage, error)
	Server func() string
	// Name is this coordinator, Version that of ddiff, StoreAddress the address of Store. Default: unknown.
	Name, Version, StoreAddress string
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Logger receives what delays lists of items. Default: no log.
	Logger *slog.Logger
}

// Cluster reads and changes a cluster. Its methods may be called concurrently.
type Cluster struct {
	cfg    Config
	views  *views
	counts *semaphore.Weighted // of datasets
	memory *memory
	// onBoard and statuses are the records of campaigns.
	onBoard, statuses *queue.Mirror
}

// New returns a cluster. The caller must call Close.
func New(cfg Config) *Cluster {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	c := &Cluster{
		cfg: cfg, onBoard: cfg.Board.Mirror(record.KeyCampaignPrefix), statuses: cfg.Board.Mirror(record.KeyStatusPrefix),
		counts: semaphore.NewWeighted(countParallel), memory: newMemory(),
	}
	c.views = newViews(cfg)
	return c
}

// Close ends what reads items.
func (c *Cluster) Close() { c.views.close() }

// unknown turns a missing record into an error with a remedy.
func unknown(id string, err error) error {
	if errors.Is(err, queue.ErrNoRecord) || errors.Is(err, queue.ErrBadName) {
		return api.NewError(api.ErrNotFound, fmt.Sprintf("unknown campaign %s; see: ddiff list --all", id))
	}
	return err
}

// Campaigns lists the campaigns in the order of their submission.
func (c *Cluster) Campaigns(ctx context.Context, archived bool) (api.Campaigns, error) {
	all, skipped, err := c.campaigns(ctx)
	if err != nil {
		return api.Campaigns{}, err
	}
	if archived {
		onBoard := map[string]bool{}
		for _, s := range all {
			onBoard[s.Campaign.ID] = true
		}
		old, err := archive.List(ctx, c.cfg.Store)
		if err != nil {
			return api.Campaigns{}, err
		}
		all = slices.Clone(all) // others have it too
		for _, s := range old {
			if !onBoard[s.Campaign.ID] {
				public(s.Campaign)
				all = append(all, s)
			}
		}
		slices.SortStableFunc(all, func(a, b record.CampaignStatus) int { return a.Campaign.Submitted.Compare(b.Campaign.Submitted) })
	}
	return api.Campaigns{Campaigns: append([]record.CampaignStatus{}, all...), Skipped: lines(skipped)}, nil
}

// public removes secrets from the addresses of a campaign. That of notify is its host only: the path may be a secret too.
func public(c *record.Campaign) {
	c.Last = nil // it is the status
	d := &c.Spec.Dataset
	all := []*string{&d.Path, &d.Mask, &d.Kernel, &c.Spec.Prior}
	for i := range c.Spec.Tasks {
		t := &c.Spec.Tasks[i]
		all = append(all, &t.Operator, &t.Mask, &t.Kernel)
	}
	for i := range c.Operators {
		all = append(all, &c.Operators[i].Path)
	}
	for _, text := range all {
		*text = redact.Address(*text)
	}
	if u, err := url.Parse(c.Spec.Notify); err == nil && u.Host != "" {
		c.Spec.Notify = u.Scheme + "://" + u.Host
	}
}

func lines(errs []error) []string {
	var out []string
	for _, err := range errs {
		out = append(out, strings.Join(strings.Fields(err.Error()), " "))
	}
	return out
}

// Campaign returns a campaign and its last status, also of the archive.
func (c *Cluster) Campaign(ctx context.Context, id string) (record.CampaignStatus, error) {
	s, err := board.Status(ctx, c.cfg.Board, id)
	if errors.Is(err, queue.ErrNoRecord) {
		s, err = c.archived(ctx, id)
	}
	if err != nil {
		return s, unknown(id, err)
	}
	public(s.Campaign)
	return s, nil
}

// archived reads a campaign that the board lacks from the store.
func (c *Cluster) archived(ctx context.Context, id string) (s record.CampaignStatus, err error) {
	campaign, err := recordOf(ctx, c.cfg, id)
	if err != nil {
		return s, err
	}
	newest, err := index.New(c.cfg.Store).Newest(ctx, id)
	if err != nil {
		return s, err
	}
	if s, err = board.JoinStatus(campaign, nil); err == nil && newest.State == index.Archived {
		s.Archived = newest.Row.Archived
	}
	return s, err
}

// Workers returns the last heartbeats of the workers.
func (c *Cluster) Workers(ctx context.Context) (api.Workers, error) {
	found, err := c.records(ctx, record.KeyWorkerPrefix)
	if err != nil {
		return api.Workers{}, fmt.Errorf("list workers: %w", err)
	}
	all, skipped := board.Beats(found)
	out := api.Workers{Workers: []record.Beat{}, Skipped: lines(skipped)}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out.Workers = append(out.Workers, all[key])
	}
	return out, nil
}

// Logs returns the records of attempts; item is an identity or its beginning, or empty for all.
func (c *Cluster) Logs(ctx context.Context, id, item string) (api.Logs, error) {
	campaign, err := c.views.record(ctx, id)
	if err != nil {
		return api.Logs{}, err
	}
	attempts, more, err := archive.Logs(ctx, c.cfg.Store, campaign, item)
	return api.Logs{Attempts: append([]record.AttemptLog{}, attempts...), More: more}, unknown(id, err)
}

// Cluster describes coordinators, streams and queues.
func (c *Cluster) Cluster(ctx context.Context) (api.Cluster, error) {
	out := api.Cluster{
		Answered: c.cfg.Name, Version: c.cfg.Version, Store: redact.Address(c.cfg.StoreAddress), Coordinators: []record.CoordinatorBeat{},
		Streams: []api.Stream{}, Queues: []api.Queue{},
	}
	if c.cfg.Server != nil {
		out.NATS = redact.Address(c.cfg.Server())
	}
	var leader queue.Leader
	data, _, err := c.cfg.Board.Get(ctx, queue.KeyLeader)
	switch {
	case errors.Is(err, queue.ErrNoRecord):
	case err != nil:
		return out, err
	case json.Unmarshal(data, &leader) == nil:
		out.Leader = &api.Leader{Name: leader.Name, Since: leader.Since}
	}
	beats, err := c.records(ctx, record.KeyCoordinatorPrefix)
	if err != nil {
		return out, err
	}
	for _, key := range slices.Sorted(maps.Keys(beats)) {
		var beat record.CoordinatorBeat
		if json.Unmarshal(beats[key].Data, &beat) == nil {
			beat.Age = beats[key].Age().Seconds()
			out.Coordinators = append(out.Coordinators, beat)
		}
	}
	if c.cfg.Usage != nil {
		streams, err := c.cfg.Usage(ctx)
		if err != nil {
			return out, err
		}
		for _, s := range streams {
			out.Streams = append(out.Streams, api.Stream(s))
		}
	}
	all, _, err := c.campaigns(ctx)
	for _, s := range all {
		if n := s.Status.Counts; !s.Campaign.Phase.Ended() {
			out.Queues = append(out.Queues, api.Queue{Campaign: s.Campaign.ID, Priority: s.Campaign.Priority, Waiting: n.Pending, InFlight: n.Running})
		}
	}
	return out, err
}

// Watch yields the newest records of campaigns, statuses, workers and the leader, then an event of kind ready, and then the changes.
func (c *Cluster) Watch(ctx context.Context) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		var leader queue.Leader
		for change, err := range c.cfg.Board.Watch(ctx, "") {
			if err != nil {
				yield(api.Event{}, err)
				return
			}
			e := api.Event{ID: change.Revision, Data: change.Data}
			campaign, isCampaign := strings.CutPrefix(change.Key, record.KeyCampaignPrefix)
			status, isStatus := strings.CutPrefix(change.Key, record.KeyStatusPrefix)
			worker, isWorker := strings.CutPrefix(change.Key, record.KeyWorkerPrefix)
			switch {
			case change.Ready:
				e.Kind = api.EventReady
			case isCampaign:
				decoded, err := record.DecodeCampaign(campaign, change.Data)
				if err == nil {
					public(decoded)
					e.Data, err = json.Marshal(decoded)
				}
				if e.Kind, e.Key = api.EventCampaign, campaign; !change.Deleted && err != nil {
					continue
				}
			case isStatus:
				e.Kind, e.Key = api.EventStatus, status
			case isWorker:
				e.Kind, e.Key = api.EventWorker, worker
			case change.Key == queue.KeyLeader:
				var next queue.Leader
				if json.Unmarshal(change.Data, &next) == nil && next.ID == leader.ID && !change.Deleted {
					continue // a renewal
				}
				if e.Kind, e.Key, e.Data, leader = api.EventLeader, next.Name, nil, next; next.Name != "" {
					e.Data, _ = json.Marshal(api.Leader{Name: next.Name, Since: next.Since})
				}
			default:
				continue
			}
			if !json.Valid(e.Data) {
				e.Data = nil
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}
