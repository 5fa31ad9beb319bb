package record

import (
	"crypto/sha256"
	"fmt"
	"time"

	"ddiff/restore/item"
)

// LogsFolder is the prefix of the records of attempts that did not restore their item: logs/CAMPAIGN/ID.ATTEMPT.WORKER.json,
// where WORKER is a digest of the worker's name. One worker writes at most one record for each attempt.
const LogsFolder = "logs/"

// AttemptLog is the record of one attempt with the last lines of its worker's log. A done item has them in [item.Result.Log].
type AttemptLog struct {
	// ID is the item's identity.
	ID      string `json:"id"`
	Name    string `json:"name,omitempty"`
	Task    string `json:"task,omitempty"`
	Attempt int    `json:"attempt"`
	Worker  string `json:"worker"`
	TraceID string `json:"trace_id,omitempty"`
	// Outcome is done, failed, dead, retried, or disputed: another worker is asked for a second opinion.
	Outcome string `json:"outcome"`
	// Reason explains an Outcome other than done.
	Reason string `json:"reason,omitempty"`
	// At is the end of the attempt by the worker's clock.
	At time.Time `json:"at"`
	// Lines are the last log lines about the item, each with its time and level, and for outcomes other than done also lines
	// about no item. At most 20 lines of 500 bytes.
	Lines []string `json:"lines,omitempty"`
}

// The outcomes of attempts that are no final states of items.
const (
	AttemptRetried  = "retried"
	AttemptDisputed = "disputed"
)

// LogPrefix is the prefix of the keys of the records of an item's attempts. id may be the beginning of an identity.
func LogPrefix(campaign, id string) string { return LogsFolder + campaign + "/" + id }

// Key returns the storage key of the record.
func (a *AttemptLog) Key(campaign string) string {
	worker := sha256.Sum256([]byte(a.Worker))
	return fmt.Sprintf("%s.%d.%x.json", LogPrefix(campaign, a.ID), a.Attempt, worker[:4])
}

// AttemptOf returns the record of the attempt that restored an item.
func AttemptOf(r *item.Result) AttemptLog {
	return AttemptLog{
		ID: r.Item.ID, Name: r.Item.Name, Task: r.Item.Task, Attempt: r.Attempt, Worker: r.Worker, TraceID: r.TraceID,
		Outcome: string(r.Outcome), Reason: r.Reason, At: r.Finished, Lines: r.Log,
	}
}
