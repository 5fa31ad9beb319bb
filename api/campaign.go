package api

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"ddiff/manifest"
)

// Campaigns is the list of campaigns, in the order of their submission.
type Campaigns struct {
	Campaigns []manifest.CampaignStatus `json:"campaigns"`
	// Skipped has one line for each record that cannot be read.
	Skipped []string `json:"skipped,omitempty"`
}

// Order has the settings of a submission beside the campaign file.
type Order struct {
	// Output is the prefix of the results below the cluster's store. Default: the id.
	Output string
	// Priority is the campaign's class. Default: normal.
	Priority manifest.Priority
	// Weight is its share within the class, 1..1000. Default: 1.
	Weight int
	// Canary is the number of items that run alone first; 0 for none.
	Canary int
	// PriorSHA256 is the digest of the campaign's prior and Operators those of its operator files, as far as they are known. Other files
	// then reject the campaign.
	PriorSHA256 string
	Operators   []manifest.OperatorFile
	// Owner is the owner of the token. The server sets it.
	Owner string
}

// Submitted is the answer to a submission.
type Submitted struct {
	ID string `json:"id"`
	// Created is false if the campaign exists.
	Created bool           `json:"created"`
	Phase   manifest.Phase `json:"phase"`
	// Wanted is the requested state of a campaign that exists.
	Wanted manifest.Wanted `json:"wanted"`
	Output string          `json:"output"`
	// Recalled is the time at which the campaign came back from the archive.
	Recalled time.Time `json:"recalled,omitzero"`
}

// Checked is the answer to a submission that only checks.
type Checked struct {
	// ID is the id that the campaign would have.
	ID string `json:"id,omitempty"`
	// Rows and Items are the numbers of images and of items; nil if the dataset cannot be counted in time. More: there are more rows.
	Rows  *int `json:"rows,omitempty"`
	Items *int `json:"items,omitempty"`
	More  bool `json:"more,omitempty"`
	// Estimate is about the counted items; nil without a count.
	Estimate *Estimate `json:"estimate,omitempty"`
	// Problems are the wrong fields; empty for a campaign that can be submitted.
	Problems []Problem `json:"problems"`
}

// Estimate is what items would take, by results of earlier campaigns of the cluster with the same tasks, methods and settings that change the work.
type Estimate struct {
	// Seconds are device-seconds, Cost is their cost; nil if unknown.
	Seconds *float64 `json:"device_seconds,omitempty"`
	Cost    *float64 `json:"cost,omitempty"`
	// Workers is the number of live workers of the pool.
	Workers int `json:"workers,omitempty"`
	// Samples is the number of results that were read, Campaigns are theirs.
	Samples   int      `json:"samples,omitempty"`
	Campaigns []string `json:"campaigns,omitempty"`
	// Unknown are the items without such a result; the time of the others is then unknown too.
	Unknown []string `json:"unknown,omitempty"`
}

// Controlled is the answer to pause, resume and cancel.
type Controlled struct {
	ID    string         `json:"id"`
	Phase manifest.Phase `json:"phase"`
	// Wanted is the state that was requested.
	Wanted manifest.Wanted `json:"wanted"`
	// Stored: a coordinator has stored the request, so that it survives a loss of the queue's data.
	Stored bool `json:"stored"`
}

// Retry selects the items of a retry: by their final states, with a reason that contains Where; or Items, identities of dead items or
// their beginnings; or those that are missing from the store.
type Retry struct {
	Outcomes []manifest.Outcome `json:"outcomes,omitempty" enum:"failed,dead"`
	Where    string             `json:"where,omitempty"`
	Items    []string           `json:"items,omitempty"`
	Missing  bool               `json:"missing,omitempty"`
}

// Retried is the answer to a retry.
type Retried struct {
	// Published is the number of items that run again.
	Published int `json:"published"`
}

// Delivery is a notification of a campaign that was sent or given up.
type Delivery struct {
	ID    string         `json:"id"`
	Phase manifest.Phase `json:"phase"`
	At    time.Time      `json:"at"`
	// Status is that of the last answer, 0 without one. Error is empty if the receiver took the message.
	Status int    `json:"status,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Deliveries are the notifications of a campaign, the oldest first.
type Deliveries struct {
	Deliveries []Delivery `json:"deliveries"`
}

// Problem is one wrong field of a campaign.
type Problem struct {
	// Field is the path of the field, as in "tasks[1].sigma"; empty for the whole.
	Field string `json:"field,omitempty"`
	// Line is the line of the campaign file, from 1.
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
}

// DeadLetter is a dead item with the reason.
type DeadLetter struct {
	ID       string    `json:"id"`
	Reason   string    `json:"reason"`
	Attempts int       `json:"attempts"`
	Worker   string    `json:"worker,omitempty"`
	TraceID  string    `json:"trace_id,omitempty"`
	Log      []string  `json:"log,omitempty"`
	Class    string    `json:"class"`
	Buried   time.Time `json:"buried"`
	// Item is the work item.
	Item json.RawMessage `json:"item,omitempty"`
}

// DeadLetters are the dead items of a campaign, the oldest first.
type DeadLetters struct {
	Dead    []DeadLetter `json:"dead"`
	Skipped []string     `json:"skipped,omitempty"`
}

// Logs are the records of attempts, in the order of their ends.
type Logs struct {
	Attempts []manifest.AttemptLog `json:"attempts"`
	// More: there are others; give an item.
	More bool `json:"more,omitempty"`
}

// Named returns the letters whose ids begin with one of the texts, all without a text.
func (d DeadLetters) Named(items []string) []DeadLetter {
	if len(items) == 0 {
		return d.Dead
	}
	var out []DeadLetter
	for _, l := range d.Dead {
		if slices.ContainsFunc(items, func(begin string) bool { return strings.HasPrefix(l.ID, begin) }) {
			out = append(out, l)
		}
	}
	return out
}
