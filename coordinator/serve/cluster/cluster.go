// Package cluster answers the requests of package serve, and the verbs of the command line, from the board, the queue and the store of a
// cluster.
//
// Writes are those of packages board and archive, so that any coordinator, and any command with access to the queue, can make them. What is
// read for lists of items is in memory, see views.go. A verb of users is a method here that the verbs of cmd/ddiff/cluster and a route call.
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
	"ddiff/coordinator/archive"
	"ddiff/coordinator/board"
	"ddiff/coordinator/shard"
	"ddiff/internal/redact"
	"ddiff/manifest"
	"ddiff/queue"
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
	// Campaigns is the number of campaigns that an owner may have on the board, also ended ones. Default: DefaultCampaigns.
	Campaigns int
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
	shares shares
	// onBoard and statuses are the records of campaigns.
	onBoard, statuses *queue.Mirror
	missed            *board.Confirmer
}

// New returns a cluster. The caller must call Close.
func New(cfg Config) *Cluster {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	cfg.Campaigns = cmp.Or(cfg.Campaigns, DefaultCampaigns)
	c := &Cluster{
		cfg: cfg, onBoard: cfg.Board.Mirror(manifest.KeyCampaignPrefix), statuses: cfg.Board.Mirror(manifest.KeyStatusPrefix),
		counts: semaphore.NewWeighted(countParallel), memory: newMemory(), missed: board.NewConfirmer(cfg.Board),
	}
	c.views = newViews(cfg, c.missed)
	return c
}

// Close ends what reads items.
func (c *Cluster) Close() { c.views.close() }

// unknown turns a missing record into an error with a remedy. Without a coordinator it is not known whether the archive has the campaign.
func unknown(id string, err error) error {
	switch {
	case errors.Is(err, archive.ErrNoLeader):
		return fmt.Errorf("campaign %s is not on the board, and the archive needs a coordinator: %w", id, err)
	case errors.Is(err, queue.ErrNoRecord), errors.Is(err, queue.ErrBadName):
		return api.NewError(api.ErrNotFound, fmt.Sprintf("unknown campaign %s; see: ddiff list --all", id))
	}
	return err
}

// change returns an archived campaign to the board, and calls act, which reads or changes it.
func (c *Cluster) change(ctx context.Context, id string, act func() error) error {
	err := c.find(ctx, id)
	if err == nil {
		err = archive.Recall(ctx, c.cfg.Board, id)
	}
	if err == nil {
		err = c.missed.Look(ctx, act)
	}
	return unknown(id, err)
}

// find returns an error unless board or store has something of a campaign: without a leader an unknown campaign is unknown too.
func (c *Cluster) find(ctx context.Context, id string) error {
	return unknown(id, c.missed.Look(ctx, func() error {
		if _, _, err := c.cfg.Board.Get(ctx, manifest.KeyCampaignPrefix+id); !errors.Is(err, queue.ErrNoRecord) {
			return err
		}
		for _, err := range c.cfg.Store.List(ctx, "campaigns/"+id+"/") {
			return err
		}
		return queue.ErrNoRecord
	}))
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
		slices.SortStableFunc(all, func(a, b manifest.CampaignStatus) int { return a.Campaign.Submitted.Compare(b.Campaign.Submitted) })
	}
	return api.Campaigns{Campaigns: append([]manifest.CampaignStatus{}, all...), Skipped: lines(skipped)}, nil
}

// public removes secrets from the addresses of a campaign. That of notify is its host only: the path may be a secret too.
func public(c *manifest.Campaign) {
	c.Last = nil             // it is the status
	c.Asks, c.Heard = nil, 0 // the log has them
	d := &c.Spec.Dataset
	all := []*string{&d.Path, &d.Mask, &d.Kernel, &c.Spec.Prior}
	for i := range c.Spec.Tasks {
		t := &c.Spec.Tasks[i]
		all = append(all, &t.Operator, &t.Mask, &t.Kernel)
	}
	for i := range c.Operators {
		all = append(all, &c.Operators[i].Path)
	}
	for i := range c.Commands {
		all = append(all, &c.Commands[i].Path)
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

// Campaign returns a campaign and its last status. An archived one returns to the board.
func (c *Cluster) Campaign(ctx context.Context, id string) (manifest.CampaignStatus, error) {
	s, err := board.Status(ctx, c.cfg.Board, id)
	if errors.Is(err, queue.ErrNoRecord) {
		err = c.change(ctx, id, func() (err error) {
			s, err = board.Status(ctx, c.cfg.Board, id)
			return err
		})
	}
	if errors.Is(err, queue.ErrBadName) {
		err = unknown(id, err)
	}
	if err != nil {
		return s, err
	}
	public(s.Campaign)
	return s, nil
}

// Workers returns the last heartbeats of the workers.
func (c *Cluster) Workers(ctx context.Context) (api.Workers, error) {
	found, err := c.records(ctx, manifest.KeyWorkerPrefix)
	if err != nil {
		return api.Workers{}, fmt.Errorf("list workers: %w", err)
	}
	all, skipped := board.Beats(found)
	out := api.Workers{Workers: []manifest.Beat{}, Skipped: lines(skipped)}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out.Workers = append(out.Workers, all[key])
	}
	return out, nil
}

// Logs returns the records of attempts; item is an identity or its beginning, or empty for all.
func (c *Cluster) Logs(ctx context.Context, id, item string) (api.Logs, error) {
	record, err := c.views.record(ctx, id)
	if err != nil {
		return api.Logs{}, err
	}
	attempts, more, err := archive.Logs(ctx, c.cfg.Store, record, item)
	return api.Logs{Attempts: append([]manifest.AttemptLog{}, attempts...), More: more}, unknown(id, err)
}

// Cluster describes coordinators, streams and queues.
func (c *Cluster) Cluster(ctx context.Context) (api.Cluster, error) {
	out := api.Cluster{
		Answered: c.cfg.Name, Version: c.cfg.Version, Store: redact.Address(c.cfg.StoreAddress), Coordinators: []manifest.CoordinatorBeat{},
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
	beats, err := c.records(ctx, manifest.KeyCoordinatorPrefix)
	if err != nil {
		return out, err
	}
	for _, key := range slices.Sorted(maps.Keys(beats)) {
		var beat manifest.CoordinatorBeat
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
			campaign, isCampaign := strings.CutPrefix(change.Key, manifest.KeyCampaignPrefix)
			status, isStatus := strings.CutPrefix(change.Key, manifest.KeyStatusPrefix)
			worker, isWorker := strings.CutPrefix(change.Key, manifest.KeyWorkerPrefix)
			switch {
			case change.Ready:
				e.Kind = api.EventReady
			case isCampaign:
				record, err := manifest.DecodeCampaign(campaign, change.Data)
				if err == nil {
					public(record)
					e.Data, err = json.Marshal(record)
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
