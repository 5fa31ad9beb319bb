package board

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"ddiff/internal/failure"
	"ddiff/internal/queue"
	"ddiff/internal/record"
)

// Campaigns lists the campaigns of the board with their last status, in the order of submission. A campaign that no
// coordinator has seen yet has a status without counts. skipped has one error for each record that cannot be read.
func Campaigns(ctx context.Context, b *queue.Board) (all []record.CampaignStatus, skipped []error, err error) {
	campaigns, err := Records(ctx, b, record.KeyCampaignPrefix)
	if err != nil {
		return nil, nil, fmt.Errorf("list campaigns: %w", err)
	}
	statuses, err := Records(ctx, b, record.KeyStatusPrefix)
	if err != nil {
		return nil, nil, fmt.Errorf("list campaigns: %w", err)
	}
	all, skipped = Join(campaigns, statuses)
	return all, skipped, nil
}

// Join reads the records of campaigns and of their statuses, by key, as Campaigns.
func Join(campaigns, statuses map[string]queue.Change) (all []record.CampaignStatus, skipped []error) {
	keys := slices.Sorted(maps.Keys(campaigns))
	read, errs := make([]record.CampaignStatus, len(keys)), make([]error, len(keys))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0)) // thousands of records are decoded
	for i, key := range keys {
		group.Go(func() error {
			id := strings.TrimPrefix(key, record.KeyCampaignPrefix)
			c, err := record.DecodeCampaign(id, campaigns[key].Data)
			if err != nil {
				errs[i] = fmt.Errorf("read campaign %s: %w", id, err)
				return nil
			}
			if read[i], err = JoinStatus(c, statuses[record.KeyStatusPrefix+id].Data); err != nil {
				errs[i] = fmt.Errorf("read status of campaign %s: %w", id, err)
			}
			return nil
		})
	}
	_ = group.Wait() // errs has the errors
	all = slices.DeleteFunc(read, func(s record.CampaignStatus) bool { return s.Campaign == nil })
	slices.SortStableFunc(all, func(a, b record.CampaignStatus) int { return a.Campaign.Submitted.Compare(b.Campaign.Submitted) })
	return all, slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// Status reads a campaign and its last status. It returns queue.ErrNoRecord when there is no campaign. If the record of the
// status is damaged, the status has the problem and no counts.
func Status(ctx context.Context, b *queue.Board, id string) (record.CampaignStatus, error) {
	c, err := Read(ctx, b, id)
	if err != nil {
		return record.CampaignStatus{}, err
	}
	data, _, err := b.Get(ctx, record.KeyStatusPrefix+id)
	if err == nil || errors.Is(err, queue.ErrNoRecord) {
		s, err := JoinStatus(c, data)
		if err != nil {
			s.Status.Problem = fmt.Sprintf("the record %s%s cannot be read: %v", record.KeyStatusPrefix, id, err)
		}
		return s, nil
	}
	return record.CampaignStatus{}, fmt.Errorf("read status of campaign %s: %w", id, err)
}

// JoinStatus adds the record of a status, which may be missing, to a campaign. That of an ended campaign is then the one at its end. With
// an error, the status has no counts.
func JoinStatus(c *record.Campaign, data []byte) (record.CampaignStatus, error) {
	s := record.CampaignStatus{Campaign: c, Status: record.Status{ID: c.ID, Phase: c.Phase, Reason: c.Reason}}
	if data == nil {
		if c.Phase.Ended() && c.Last != nil {
			s.Status = *c.Last
		}
		return s, nil
	}
	var status record.Status
	if err := json.Unmarshal(data, &status); err != nil {
		return s, err
	}
	if status.ID != c.ID {
		return s, fmt.Errorf("it belongs to campaign %q", status.ID)
	}
	s.Status = status
	return s, nil
}

// Workers returns the last beat of every worker, by key of the board. skipped has one error for each record that cannot
// be read.
func Workers(ctx context.Context, b *queue.Board) (beats map[string]record.Beat, skipped []error, err error) {
	found, err := Records(ctx, b, record.KeyWorkerPrefix)
	if err != nil {
		return nil, nil, fmt.Errorf("list workers: %w", err)
	}
	beats, skipped = Beats(found)
	return beats, skipped, nil
}

// Beats reads the records of workers, as Workers.
func Beats(records map[string]queue.Change) (beats map[string]record.Beat, skipped []error) {
	beats = map[string]record.Beat{}
	for _, key := range slices.Sorted(maps.Keys(records)) {
		var beat record.Beat
		err := json.Unmarshal(records[key].Data, &beat)
		if err == nil && beat.Name == "" {
			err = errors.New("it has no name")
		}
		if err != nil {
			skipped = append(skipped, fmt.Errorf("read worker %s: %w", key, err))
			continue
		}
		beat.Age = records[key].Age().Seconds()
		beats[key] = beat
	}
	return beats, skipped
}

// MaxWorkers is the number of records of workers above which none is read: their readers would take minutes. A leader removes them, and
// workers that live write theirs again within seconds.
const MaxWorkers = 8192

// ErrFlooded: the board has more records of workers than MaxWorkers.
var ErrFlooded = failure.New(failure.Server, "too many records of workers")

// checkFlood returns ErrFlooded if the board has more records of workers than limit.
func checkFlood(ctx context.Context, b *queue.Board, limit int) error {
	keys, err := b.Names(ctx, record.KeyWorkerPrefix)
	if err == nil && len(keys) > limit {
		err = fmt.Errorf("%w: the board has %d, the limit is %d; a process with the credentials of a worker may write them: renew the credentials. "+
			"The leading coordinator removes the records within some minutes", ErrFlooded, len(keys), limit)
	}
	return err
}

// Discard removes the records of workers from a flooded board, about a thousand in a second. It returns their number.
func Discard(ctx context.Context, b *queue.Board) (int, error) {
	keys, err := b.Names(ctx, record.KeyWorkerPrefix)
	if err != nil {
		return 0, err
	}
	for i, key := range keys {
		if err := b.Discard(ctx, key); err != nil {
			return i, err
		}
	}
	return len(keys), nil
}

// Records reads all records with a prefix in one pass, those of workers unless there are more than MaxWorkers.
func Records(ctx context.Context, b *queue.Board, prefix string) (map[string]queue.Change, error) {
	if prefix == record.KeyWorkerPrefix {
		if err := checkFlood(ctx, b, MaxWorkers); err != nil {
			return nil, err
		}
	}
	return b.Mirror(prefix).Read(ctx)
}
