package archive

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"ddiff/coordinator/board"
	"ddiff/coordinator/index"
	"ddiff/manifest"
	"ddiff/queue"
)

// request asks the leading coordinator about campaigns that are not on the board, because users may lack access to the store.
type request struct {
	// ID identifies the request. Its repetitions have the same.
	ID   string `json:"id"`
	Verb string `json:"verb"`
	// Campaign is the campaign that it is about, Item the item of verbLogs, as its identity or the beginning; empty: all.
	Campaign string `json:"campaign,omitempty"`
	Item     string `json:"item,omitempty"`
	// After is the Last of the answer that this one continues.
	After string `json:"after,omitempty"`
}

// The verbs of requests.
const (
	verbRecall  = "recall"  // bring an archived campaign back to the board
	verbArchive = "archive" // archive an ended campaign at once
	verbList    = "list"    // list the archived campaigns
	verbBoard   = "board"   // read the records of the campaigns on the board and of their statuses
	verbLogs    = "logs"    // read the log lines of attempts
)

// answer is the answer to a request.
type answer struct {
	// Error is one line; empty after success. Missing: there is no such campaign.
	Error   string `json:"error,omitempty"`
	Missing bool   `json:"missing,omitempty"`
	// Keys are the entries of the index for verbList, or those of the records for verbBoard, Attempts the records for verbLogs. The list
	// continues after Last, if that is set.
	Keys     []string              `json:"keys,omitempty"`
	Attempts []manifest.AttemptLog `json:"attempts,omitempty"`
	Last     string                `json:"last,omitempty"`
	// Sizes are the bytes of each record for verbBoard. The records follow the JSON and a line end as they are: inside it, a list of
	// thousands would take most of its time to be quoted and read.
	Sizes   []int `json:"sizes,omitempty"`
	records [][]byte
}

// encode returns an answer as a message.
func encode(out answer) []byte {
	data, err := json.Marshal(out)
	if len(out.records) > 0 {
		data = append(append(data, '\n'), bytes.Join(out.records, nil)...)
	}
	if err == nil && len(data) > queue.MaxRecordBytes {
		err = fmt.Errorf("the answer has %d bytes, the limit is %d", len(data), queue.MaxRecordBytes)
	}
	if err != nil {
		return encode(answer{Error: err.Error()})
	}
	return data
}

// decode reads a message of encode.
func decode(data []byte) (out answer, err error) {
	head, records, _ := bytes.Cut(data, []byte("\n"))
	if err := json.Unmarshal(head, &out); err != nil {
		return out, err
	}
	for _, size := range out.Sizes {
		if size < 0 || size > len(records) || len(out.records) == len(out.Keys) {
			return out, errors.New("the records of the leader's answer do not have their sizes; use one version of ddiff everywhere")
		}
		out.records, records = append(out.records, records[:size]), records[size:]
	}
	return out, nil
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
	_, err = send(ctx, b, request{Verb: verbRecall, Campaign: id})
	if err != nil {
		return fmt.Errorf("look for campaign %s in the archive: %w", id, err)
	}
	return nil
}

// Archive moves a campaign that has ended to the archive at once. It does nothing for an archived campaign. It returns
// queue.ErrNoRecord if there is no such campaign, ErrNoLeader, and ErrRefused if the campaign has not ended.
func Archive(ctx context.Context, b *queue.Board, id string) error {
	if _, err := send(ctx, b, request{Verb: verbArchive, Campaign: id}); err != nil {
		return fmt.Errorf("archive campaign %s: %w", id, err)
	}
	return nil
}

// boardLimit is how long Campaigns waits for the leader.
const boardLimit = 2 * time.Second

// Campaigns is board.Campaigns by the leader, which has the records in memory: without it, each costs a request. If the leader does not
// answer, Campaigns reads the board.
func Campaigns(ctx context.Context, b *queue.Board) (all []manifest.CampaignStatus, skipped []error, err error) {
	limited, cancel := context.WithTimeout(ctx, boardLimit)
	defer cancel()
	campaigns, statuses := map[string]queue.Change{}, map[string]queue.Change{}
	for r := (request{Verb: verbBoard}); ; {
		page, err := send(limited, b, r)
		if err != nil {
			return board.Campaigns(ctx, b)
		}
		for i, data := range page.records {
			if key := page.Keys[i]; strings.HasPrefix(key, manifest.KeyCampaignPrefix) {
				campaigns[key] = queue.Change{Key: key, Data: data}
			} else {
				statuses[key] = queue.Change{Key: key, Data: data}
			}
		}
		if r.After = page.Last; r.After == "" {
			all, skipped = board.Join(campaigns, statuses)
			return all, skipped, nil
		}
	}
}

// List lists the archived campaigns in the order of their ids, with their phase, priority, weight, counts and times
// to the second; the other fields are empty. It returns ErrNoLeader.
func List(ctx context.Context, b *queue.Board) ([]manifest.CampaignStatus, error) {
	var all []manifest.CampaignStatus
	for r := (request{Verb: verbList}); ; {
		page, err := send(ctx, b, r)
		if err != nil {
			return nil, fmt.Errorf("list archived campaigns: %w", err)
		}
		for _, key := range page.Keys {
			e, ok := index.ParseKey(key)
			if !ok {
				return nil, fmt.Errorf("list archived campaigns: unknown entry %q; use one version of ddiff everywhere", key)
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
		if r.After = page.Last; r.After == "" {
			return all, nil
		}
	}
}

// send sends a request to the leader and waits for the answer.
func send(ctx context.Context, b *queue.Board, r request) (out answer, err error) {
	if _, _, err := b.Get(ctx, queue.KeyLeader); errors.Is(err, queue.ErrNoRecord) {
		return out, fmt.Errorf("%w: none leads%s", ErrNoLeader, noLeader)
	} else if err != nil {
		return out, err
	}
	r.ID = rand.Text()
	data, err := json.Marshal(r)
	if err == nil {
		data, err = b.Request(ctx, data)
	}
	if errors.Is(err, queue.ErrUnavailable) {
		return out, fmt.Errorf("%w: %w%s", ErrNoLeader, err, noLeader)
	}
	if err == nil {
		out, err = decode(data)
	}
	switch {
	case err != nil:
		return out, err
	case out.Missing:
		return out, queue.ErrNoRecord
	case out.Error != "":
		return out, fmt.Errorf("%w: %s", board.ErrRefused, out.Error)
	}
	return out, nil
}
