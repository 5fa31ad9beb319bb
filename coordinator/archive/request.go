package archive

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"ddiff/coordinator/board"
	"ddiff/coordinator/index"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// request asks the leading coordinator to move a campaign between board and archive.
type request struct {
	// ID identifies the request. Its repetitions have the same.
	ID       string `json:"id"`
	Verb     string `json:"verb"`
	Campaign string `json:"campaign,omitempty"`
}

// The verbs of requests.
const (
	verbRecall  = "recall"  // bring an archived campaign back to the board
	verbArchive = "archive" // archive an ended campaign at once
)

// answer is the answer to a request.
type answer struct {
	// Error is one line; empty after success. Missing: there is no such campaign.
	Error   string `json:"error,omitempty"`
	Missing bool   `json:"missing,omitempty"`
}

// encode returns an answer as a message.
func encode(out answer) []byte {
	data, _ := json.Marshal(out) // of a text and a flag
	return data
}

// ErrNoLeader: no coordinator leads, or the leader does not answer. Archived campaigns cannot be reached.
var ErrNoLeader = errors.New("no coordinator answers")

// noLeader is its remedy.
const noLeader = "; start one: ddiff coordinator"

// requestLimit is how long a leader tries to answer a request. A command waits as long.
const requestLimit = 30 * time.Second

// Recall returns a campaign from the archive to the board through the leader. It does nothing for a campaign of the board.
// It returns queue.ErrNoRecord if there is no such campaign, ErrNoLeader if only a leader could tell, and ErrRefused if
// the campaign is being deleted or its archive cannot be read.
func Recall(ctx context.Context, b *queue.Board, id string) error {
	_, err := board.Read(ctx, b, id)
	if err == nil || !errors.Is(err, queue.ErrNoRecord) {
		return err
	}
	if err := send(ctx, b, request{Verb: verbRecall, Campaign: id}); err != nil {
		return fmt.Errorf("look for campaign %s in the archive: %w", id, err)
	}
	return nil
}

// Archive moves a campaign that has ended to the archive at once. It does nothing for an archived campaign. It returns
// queue.ErrNoRecord if there is no such campaign, ErrNoLeader, and ErrRefused if the campaign has not ended.
func Archive(ctx context.Context, b *queue.Board, id string) error {
	if err := send(ctx, b, request{Verb: verbArchive, Campaign: id}); err != nil {
		return fmt.Errorf("archive campaign %s: %w", id, err)
	}
	return nil
}

// List lists the archived campaigns of a store in the order of their ids, with their phase, priority, weight, counts and times
// to the second; the other fields are empty.
func List(ctx context.Context, s storage.Store) ([]manifest.CampaignStatus, error) {
	entries, err := index.New(s).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list archived campaigns: %w", err)
	}
	var all []manifest.CampaignStatus
	for _, id := range slices.Sorted(maps.Keys(entries)) {
		e := entries[id]
		if e.State != index.Archived {
			continue
		}
		all = append(all, manifest.CampaignStatus{
			Campaign: &manifest.Campaign{
				Schema: manifest.RecordSchema, ID: e.ID, Priority: e.Row.Priority, Weight: e.Row.Weight, Submitted: e.Row.Submitted,
				Phase: e.Row.Phase, Finished: e.Row.Finished,
			},
			Status: manifest.Status{
				ID: e.ID, Phase: e.Row.Phase, Counts: e.Row.Counts, At: e.Row.Finished, Seconds: e.Row.Seconds, Cost: e.Row.Cost,
			},
			Archived: e.Row.Archived,
		})
	}
	return all, nil
}

// send sends a request to the leader and waits for the answer.
func send(ctx context.Context, b *queue.Board, r request) error {
	if _, _, err := b.Get(ctx, queue.KeyLeader); errors.Is(err, queue.ErrNoRecord) {
		return fmt.Errorf("%w: none leads%s", ErrNoLeader, noLeader)
	} else if err != nil {
		return err
	}
	r.ID = rand.Text()
	data, err := json.Marshal(r)
	if err == nil {
		data, err = b.Request(ctx, data)
	}
	if errors.Is(err, queue.ErrUnavailable) {
		return fmt.Errorf("%w: %w%s", ErrNoLeader, err, noLeader)
	}
	var out answer
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	switch {
	case err != nil:
		return err
	case out.Missing:
		return queue.ErrNoRecord
	case out.Error != "":
		return fmt.Errorf("%w: %s", board.ErrRefused, out.Error)
	}
	return nil
}
