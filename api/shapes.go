package api

import (
	"encoding/json"
	"strings"
	"time"

	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// The records of a campaign and of a cluster as the API shows them. Each is a JSON object, or a text.
type (
	// CampaignStatus is a campaign and its last status.
	CampaignStatus = record.CampaignStatus
	// Wanted is the state that a person wants: run, pause, cancel or cancel_now.
	Wanted = record.Wanted
	// Phase is the state of a campaign: queued, preflight, canary, running, paused, finished, cancelled or rejected.
	Phase = record.Phase
	// Priority is high, normal or low.
	Priority = record.Priority
	// OperatorFile names an operator file of a campaign.
	OperatorFile = record.OperatorFile
	// AttemptLog is one attempt at an item with the last lines of its worker's log.
	AttemptLog = record.AttemptLog
	// Beat is the heartbeat of a worker.
	Beat = record.Beat
	// CoordinatorBeat is the heartbeat of a coordinator.
	CoordinatorBeat = record.CoordinatorBeat
)

// Campaigns is the list of campaigns, in the order of their submission.
type Campaigns struct {
	Campaigns []CampaignStatus `json:"campaigns"`
	// Skipped has one line for each record that cannot be read.
	Skipped []string `json:"skipped,omitempty"`
}

// Order has the settings of a submission beside the campaign file.
type Order struct {
	// Output is the prefix of the results below the cluster's store. Default: the id.
	Output string
	// Priority is the campaign's class. Default: normal.
	Priority Priority
	// Weight is its share within the class, 1..1000. Default: 1.
	Weight int
	// Canary is the number of items that run alone first; 0 for none.
	Canary int
	// PriorSHA256 is the digest of the campaign's prior and Operators those of its operator files, as far as they are known. Other files
	// then reject the campaign.
	PriorSHA256 string
	Operators   []OperatorFile
	// Owner is the owner of the token. The server sets it.
	Owner string
}

// Submitted is the answer to a submission.
type Submitted struct {
	ID string `json:"id"`
	// Created is false if the campaign exists.
	Created bool  `json:"created"`
	Phase   Phase `json:"phase"`
	// Wanted is the requested state of a campaign that exists.
	Wanted Wanted `json:"wanted"`
	Output string `json:"output"`
	// Recalled is the time at which the campaign came back from the archive.
	Recalled time.Time `json:"recalled,omitzero"`
	// Warning is one line about a campaign that can be submitted, but hardly says what it should.
	Warning string `json:"warning,omitempty"`
}

// Checked is the answer to a submission that only checks.
type Checked struct {
	// ID is the id that the campaign would have.
	ID string `json:"id,omitempty"`
	// Rows and Items are the numbers of images and of items; nil if the dataset cannot be counted in time. More: there are more rows.
	Rows  *int `json:"rows,omitempty"`
	Items *int `json:"items,omitempty"`
	More  bool `json:"more,omitempty"`
	// Problems are the wrong fields; empty for a campaign that can be submitted.
	Problems []Problem `json:"problems"`
}

// Change has the settings of a campaign that change no result, so that they may be others while it runs. A setting that is missing stays.
type Change struct {
	// Priority is the class, and Weight the share within it, 1..1000.
	Priority Priority `json:"priority,omitempty" enum:"high,normal,low"`
	Weight   int      `json:"weight,omitempty" minimum:"1" maximum:"1000"`
	// Pool, Deadline and Budget are those of a campaign file. An empty text, or a budget without limits, removes them.
	Pool     *string          `json:"pool,omitempty"`
	Deadline *string          `json:"deadline,omitempty"`
	Budget   *manifest.Budget `json:"budget,omitempty"`
}

// Controlled is the answer to pause, resume and cancel.
type Controlled struct {
	ID    string `json:"id"`
	Phase Phase  `json:"phase"`
	// Wanted is the state that was requested.
	Wanted Wanted `json:"wanted"`
	// Reason says why a campaign that is wanted to run waits, as below the cap of its owner; empty: it does not, or no coordinator has said so.
	Reason string `json:"reason,omitempty"`
}

// Retry selects the items of a retry: by their final states, with a reason that contains Where; or Items, identities of failed or dead items or
// their beginnings; or those that are missing from the store.
type Retry struct {
	Outcomes []item.Outcome `json:"outcomes,omitempty" enum:"failed,dead"`
	Where    string         `json:"where,omitempty"`
	Items    []string       `json:"items,omitempty"`
	Missing  bool           `json:"missing,omitempty"`
}

// Retried is the answer to a retry.
type Retried struct {
	// Published is the number of items that run again.
	Published int `json:"published"`
}

// Append adds rows to a campaign that has read its dataset.
type Append struct {
	// Path is the dataset of the rows, as dataset.path. Empty: the rows that the campaign's own dataset has now and did not have.
	Path string `json:"path,omitempty" maxLength:"4000"`
}

// Appended is the answer to an append.
type Appended struct {
	// Items is the number of items of the first rows, and of those that were never restored and whose files have other bytes now. The others, if the
	// rows are thousands, follow.
	Items int `json:"items"`
	// Overwritten is the number of files with other bytes than those of their results, Example one of them. Their results stay.
	Overwritten int    `json:"overwritten,omitempty"`
	Example     string `json:"example,omitempty"`
}

// Deleted is the answer to a deletion, or what it would delete.
type Deleted struct {
	Removals []Removal `json:"removals"`
	Objects  int       `json:"objects"`
	Bytes    int64     `json:"bytes"`
	// Deleted is false if nothing was deleted yet.
	Deleted bool `json:"deleted"`
}

// NewDeleted adds removals up.
func NewDeleted(all []Removal, deleted bool) Deleted {
	d := Deleted{Removals: append([]Removal{}, all...), Deleted: deleted}
	for _, r := range all {
		d.Objects += r.Objects
		d.Bytes += r.Bytes
	}
	return d
}

// Removal counts deleted objects.
type Removal struct {
	// Kind is results, checkpoints, probes, logs, report, scores, tuning, windows, priors, record, index or scratch.
	Kind string `json:"kind"`
	// Name is the id of a campaign, or an output.
	Name    string `json:"name"`
	Objects int    `json:"objects"`
	Bytes   int64  `json:"bytes"`
}

// Problem is one wrong field of a campaign.
type Problem struct {
	// Field is the path of the field, as in "tasks[1].sigma"; empty for the whole.
	Field string `json:"field,omitempty"`
	// Line is the line of the campaign file, from 1.
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
}

// Logs are the records of attempts, in the order of their ends.
type Logs struct {
	Attempts []AttemptLog `json:"attempts"`
	// More: there are others; give an item.
	More bool `json:"more,omitempty"`
}

// State is the state of an item.
type State string

// The states of items. An item that a worker holds is pending.
const (
	StatePending State = "pending"
	StateDone    State = "done"
	StateFailed  State = "failed"
	StateDead    State = "dead"
)

// ItemQuery selects, sorts and pages the items of a campaign. Empty fields select all.
type ItemQuery struct {
	State   State  `query:"state" enum:"pending,done,failed,dead"`
	Task    string `query:"task" maxLength:"100" doc:"Name of a task"`
	Method  string `query:"method" maxLength:"100" doc:"Name of a method"`
	Name    string `query:"name" maxLength:"200" doc:"Text in the name of the image, or the beginning of an item's id"`
	Warning string `query:"warning" maxLength:"100" doc:"Code of a warning, or any"`
	Worker  string `query:"worker" maxLength:"200" doc:"Name of the worker"`
	Reason  string `query:"reason" maxLength:"200" doc:"Text in the reason"`
	// Sort is index, name, seconds or a metric; a minus before it reverses the order. Items without the value come last.
	Sort string `query:"sort" default:"index" maxLength:"40" doc:"index, name, seconds or a metric such as psnr; with a minus before it, descending"`
	// Limit is the number of items in the answer.
	Limit int `query:"limit" default:"100" minimum:"1" maximum:"1000"`
	// Cursor is Items.Next of the answer before.
	Cursor string `query:"cursor" maxLength:"2000" doc:"The value next of the answer before"`
}

// NeedsResults reports whether the query sorts or filters by what only a result has.
func (q ItemQuery) NeedsResults() bool {
	order := strings.TrimPrefix(q.Sort, "-")
	return q.Warning != "" || q.Worker != "" || order != "" && order != "index" && order != "name"
}

// Items is a page of items.
type Items struct {
	Items []Item `json:"items"`
	// Next is the cursor of the next page; empty on the last one.
	Next string `json:"next,omitempty"`
	// Total is the number of items that match, Listed that of the campaign so far, and Read how many results of done items were read. While
	// Read is below the number of done items, filters and orders by what a result has are incomplete.
	Total  int `json:"total"`
	Listed int `json:"listed"`
	Read   int `json:"read"`
	Done   int `json:"done"`
	// Unread are the done items of the page whose results were not read.
	Unread []string `json:"-"`
}

// Throughput counts the results of a campaign over time.
type Throughput struct {
	// From is the begin of the first interval, Seconds the length of each. Items has the number of results that were finished in each; the last
	// interval may not be over.
	From    time.Time `json:"from"`
	Seconds int       `json:"seconds"`
	Items   []int     `json:"items"`
	// Read of Done results were read, as in Items.
	Read int `json:"read"`
	Done int `json:"done"`
}

// Item is one row of a list of items.
type Item struct {
	ID     string `json:"id"`
	Index  int    `json:"index"`
	Name   string `json:"name"`
	Task   string `json:"task"`
	Method string `json:"method"`
	Run    int    `json:"run"`
	State  State  `json:"state"`
	// Metrics maps names, as in results.csv, to values of six digits.
	Metrics  map[string]float32 `json:"metrics,omitempty"`
	Reason   string             `json:"reason,omitempty"`
	Warnings []string           `json:"warnings,omitempty"`
	Seconds  float32            `json:"seconds,omitempty"`
	Worker   string             `json:"worker,omitempty"`
}

// ItemDetail is one item with its result.
type ItemDetail struct {
	Item
	// Settings is the work item: sources, sizes, parameters, the method's settings, digests.
	Settings item.Item `json:"settings"`
	// Result is result.json of a done item, see item.Result.
	Result json.RawMessage `json:"result,omitempty"`
	// Files are those in the item's folder, in the order of their names.
	Files []File `json:"files"`
}

// File is a file of an item.
type File struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// Workers are the last heartbeats of the workers.
type Workers struct {
	Workers []Beat   `json:"workers"`
	Skipped []string `json:"skipped,omitempty"`
}

// Cluster describes the fleet beside its workers.
type Cluster struct {
	// Answered is the coordinator that answers, Version its version.
	Answered string `json:"answered"`
	Version  string `json:"version"`
	// Leader is nil while no coordinator leads.
	Leader       *Leader           `json:"leader,omitempty"`
	Coordinators []CoordinatorBeat `json:"coordinators"`
	Store        string            `json:"store,omitempty" doc:"Address of the store"`
	NATS         string            `json:"nats,omitempty" doc:"Server to which the answering coordinator is connected"`
	Streams      []Stream          `json:"streams"`
	Queues       []Queue           `json:"queues"`
}

// Leader is the leading coordinator.
type Leader struct {
	Name  string    `json:"name"`
	Since time.Time `json:"since"`
}

// Stream is the size of a stream of the queue; a limit of 0 or below is none.
type Stream struct {
	Name        string `json:"name"`
	Messages    uint64 `json:"messages"`
	Bytes       uint64 `json:"bytes"`
	MaxMessages int64  `json:"max_messages"`
	MaxBytes    int64  `json:"max_bytes"`
}

// Queue is the waiting work of a campaign.
type Queue struct {
	Campaign string   `json:"campaign"`
	Priority Priority `json:"priority"`
	// Waiting and InFlight are the pending and the running items of the campaign's last status.
	Waiting  int `json:"waiting"`
	InFlight int `json:"in_flight"`
}

// Event is a change of a record of the cluster.
type Event struct {
	// ID increases with every change, on all coordinators alike.
	ID uint64 `json:"-"`
	// Kind is one of the Event constants, Key the campaign, or the worker as a token: bytes but letters, digits, - and _ are = with two digits.
	Kind string `json:"kind"`
	Key  string `json:"key"`
	// Data is the new record; empty if it was removed.
	Data json.RawMessage `json:"data,omitempty"`
}

// The kinds of events.
const (
	EventCampaign = "campaign" // a record of a campaign has changed
	EventStatus   = "status"   // counts or phase of a campaign have changed
	EventWorker   = "worker"   // a worker has sent its heartbeat
	EventLeader   = "leader"   // another coordinator leads
	EventReady    = "ready"    // the stream has begun; its id is the newest one
)

// Me is the caller.
type Me struct {
	Owner string `json:"owner,omitempty"`
	Role  Role   `json:"role"`
	// Open: the server requires no tokens. Secure: the connection is encrypted.
	Open bool `json:"open"`
	// Login: GET /session/login signs a browser in by an identity provider.
	Login bool `json:"login,omitempty"`
	// Backend is cluster, or output for finished outputs, which have no workers and cannot be changed.
	Backend string `json:"backend" enum:"cluster,output"`
}

// Role is what a token permits; a role includes those below it.
type Role string

// The roles.
const (
	Viewer    Role = "viewer"    // read everything
	Submitter Role = "submitter" // submit campaigns, and change its owner's
	Admin     Role = "admin"     // change all campaigns and the tokens
)

// Roles lists the roles, the least first.
func Roles() []Role { return []Role{Viewer, Submitter, Admin} }

// Token describes an access token. The secret itself is shown once and not stored.
type Token struct {
	// ID is the beginning of the SHA-256 of the secret.
	ID      string    `json:"id"`
	Owner   string    `json:"owner"`
	Role    Role      `json:"role"`
	Created time.Time `json:"created"`
	// Ends is the time from which the token is refused.
	Ends time.Time `json:"ends,omitzero"`
	// Secret is set in the answer to its creation only.
	Secret string `json:"token,omitempty"`
}

// TokenDays is the number of days after which a token ends by default.
const TokenDays = 365

// Tokens is the list of tokens.
type Tokens struct {
	Tokens []Token `json:"tokens"`
}
