package archive

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ddiff/coordinator/board"
	"ddiff/manifest"
	"ddiff/queue"
)

// ErrNoLeader: no coordinator leads, or the leader does not answer. Archived campaigns cannot be reached.
var ErrNoLeader = errors.New("no coordinator answers")

// requestLimit is how long a command waits for the answer to a request.
const requestLimit = 30 * time.Second

// Recall returns a campaign from the archive to the board through the leader. It does nothing for a campaign of the board.
// It returns queue.ErrNoRecord if there is no such campaign, ErrNoLeader if only a leader could tell, and ErrRefused if
// the campaign is being deleted or its archive cannot be read.
func Recall(ctx context.Context, b *queue.Board, id string) error {
	_, err := board.Read(ctx, b, id)
	if err == nil || !errors.Is(err, queue.ErrNoRecord) {
		return err
	}
	_, err = send(ctx, b, manifest.Request{Verb: manifest.RequestRecall, Campaign: id})
	if err != nil {
		return fmt.Errorf("look for campaign %s in the archive: %w", id, err)
	}
	return nil
}

// Archive moves a campaign that has ended to the archive at once. It does nothing for an archived campaign. It returns
// queue.ErrNoRecord if there is no such campaign, ErrNoLeader, and ErrRefused if the campaign has not ended.
func Archive(ctx context.Context, b *queue.Board, id string) error {
	if _, err := send(ctx, b, manifest.Request{Verb: manifest.RequestArchive, Campaign: id}); err != nil {
		return fmt.Errorf("archive campaign %s: %w", id, err)
	}
	return nil
}

// Note makes the leader log what a user does to the store, as verb of a campaign; empty: of all. It returns ErrNoLeader.
func Note(ctx context.Context, b *queue.Board, verb, id string) error {
	ask := board.AskOf(ctx, verb)
	_, err := send(ctx, b, manifest.Request{Verb: manifest.RequestNote, Campaign: id, Ask: &ask})
	return err
}

// List lists the archived campaigns in the order of their ids, with their phase, priority, weight, counts and times
// to the second; the other fields are empty. It returns ErrNoLeader.
func List(ctx context.Context, b *queue.Board) ([]manifest.CampaignStatus, error) {
	var all []manifest.CampaignStatus
	for request := (manifest.Request{Verb: manifest.RequestList}); ; {
		answer, err := send(ctx, b, request)
		if err != nil {
			return nil, fmt.Errorf("list archived campaigns: %w", err)
		}
		var rows []listed
		if err := unpack(answer.List, &rows); err != nil {
			return nil, fmt.Errorf("list archived campaigns: %w", err)
		}
		for _, r := range rows {
			all = append(all, manifest.CampaignStatus{
				Campaign: &manifest.Campaign{
					Schema: manifest.RecordSchema, ID: r.ID, Priority: r.Priority, Weight: r.Weight, Submitted: r.Submitted,
					Phase: r.Phase, Finished: r.Finished,
				},
				Status:   manifest.Status{ID: r.ID, Phase: r.Phase, Counts: r.Counts, At: r.Finished, Seconds: r.Seconds, Cost: r.Cost},
				Archived: r.Archived,
			})
			request.After = r.ID
		}
		if !answer.More || len(rows) == 0 {
			return all, nil
		}
	}
}

// send sends a request to the leader, waits for the answer, and removes the request.
func send(ctx context.Context, b *queue.Board, r manifest.Request) (manifest.Request, error) {
	if _, _, err := b.Get(ctx, queue.KeyLeader); errors.Is(err, queue.ErrNoRecord) {
		return r, fmt.Errorf("%w: none leads", ErrNoLeader)
	} else if err != nil {
		return r, err
	}
	key := manifest.KeyRequestPrefix + rand.Text()
	id := key[len(manifest.KeyCampaignPrefix):]
	data, err := json.Marshal(manifest.Campaign{
		Schema: manifest.RecordSchema, ID: id, Output: id, Priority: manifest.PriorityNormal, Weight: 1,
		Wanted: manifest.WantPause, Phase: manifest.PhaseFinished, Request: &r,
	})
	if err != nil {
		return r, err
	}
	if _, err := b.Create(ctx, key, data); err != nil {
		return r, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = b.Delete(ctx, key) // otherwise the leader removes it later
	}()
	limited, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	for change, err := range b.Watch(limited, key) {
		if err != nil {
			return r, err
		}
		if c, err := board.Parse(id, change.Data); err == nil && c.Request != nil && c.Request.Answered {
			switch r = *c.Request; {
			case r.Missing:
				return r, queue.ErrNoRecord
			case r.Error != "":
				return r, fmt.Errorf("%w: %s", board.ErrRefused, r.Error)
			}
			return r, nil
		}
	}
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	return r, fmt.Errorf("%w within %v", ErrNoLeader, requestLimit)
}
