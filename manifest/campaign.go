package manifest

import (
	"errors"
	"fmt"
	"time"
)

// RecordSchema is the version of [Campaign] and of the messages between coordinator and
// worker. A program refuses records of a higher version.
const RecordSchema = 1

// Priority is a campaign's class. Workers take no item of a lower class while a higher one
// has any.
type Priority string

// The priority classes.
const (
	PriorityHigh   Priority = "high"
	PriorityNormal Priority = "normal"
	PriorityLow    Priority = "low"
)

// Priorities lists the classes, the most urgent first.
func Priorities() []Priority { return []Priority{PriorityHigh, PriorityNormal, PriorityLow} }

// MaxWeight is the largest weight of a campaign.
const MaxWeight = 1000

// Wanted is what people ask of a campaign.
type Wanted string

// What can be wanted.
const (
	WantRun       Wanted = "run"
	WantPause     Wanted = "pause"      // hand out nothing more; what is under way is finished
	WantCancel    Wanted = "cancel"     // drop what was not begun; what is under way is finished
	WantCancelNow Wanted = "cancel_now" // drop all; workers stop at the next chunk border
)

// Phase is where a campaign stands, as its coordinator sees it.
type Phase string

// The phases, in the usual order.
const (
	PhaseQueued    Phase = "queued"    // submitted, no coordinator has taken it up
	PhasePreflight Phase = "preflight" // one worker checks prior, operators, shapes and memory
	PhaseCanary    Phase = "canary"    // the first items run alone
	PhaseRunning   Phase = "running"   // items are published and worked on
	PhasePaused    Phase = "paused"
	PhaseFinished  Phase = "finished"  // every item has its final state
	PhaseCancelled Phase = "cancelled" // items without a final state are cancelled
	PhaseRejected  Phase = "rejected"  // a check failed, see Reason
)

// Ended tells whether nothing more happens to a campaign unless somebody asks for it.
func (p Phase) Ended() bool {
	return p == PhaseFinished || p == PhaseCancelled || p == PhaseRejected
}

// PriorFile names the prior of a campaign.
type PriorFile struct {
	// Key is the prior's key below the cluster's store; empty for the bundled prior.
	Key string `json:"key,omitempty"`
	// SHA256 is the lower-case hex digest of the file.
	SHA256 string `json:"sha256"`
	// Name and License are those of its model card.
	Name    string `json:"name"`
	License string `json:"license"`
}

// Command is something that the coordinator is to do once.
type Command struct {
	// ID makes a command that is given twice one command.
	ID string `json:"id"`
	// Verb is CommandRetry or CommandReconcile.
	Verb string `json:"verb"`
	// Outcomes are the final states that a retry takes back: failed, dead.
	Outcomes []Outcome `json:"outcomes,omitempty"`
	// Where keeps only items whose reason has this text in it. Empty: all.
	Where string `json:"where,omitempty"`
	// Items keeps only these identities. Empty: all.
	Items []string `json:"items,omitempty"`
}

// The verbs of commands.
const (
	CommandRetry     = "retry"
	CommandReconcile = "reconcile"
)

// Campaign is a submitted campaign, as coordinators, workers and the command line share it.
// People write Wanted, Weight, Priority and Commands; the coordinator writes the rest.
type Campaign struct {
	Schema int    `json:"schema"`
	ID     string `json:"id"`
	Spec   Spec   `json:"spec"`
	// Output is the prefix below the cluster's store under which results lie.
	Output   string   `json:"output"`
	Priority Priority `json:"priority"`
	// Weight is the campaign's share of the workers within its class, 1..1000.
	Weight int `json:"weight"`
	// Canary is the number of items that run alone before the rest is handed out.
	Canary    int       `json:"canary"`
	Submitted time.Time `json:"submitted"`
	Wanted    Wanted    `json:"wanted"`
	Commands  []Command `json:"commands,omitempty"`

	Phase Phase `json:"phase"`
	// Reason is one line for people when the campaign was rejected.
	Reason string    `json:"reason,omitempty"`
	Prior  PriorFile `json:"prior,omitzero"`
	// Released tells that preflight and canary have passed.
	Released bool `json:"released,omitempty"`
	// Round counts how often items were published anew: it is part of the ids by which
	// the queue recognises duplicates.
	Round int `json:"round,omitempty"`
	// Shards, Rows and Items say how far the manifest has been published; Complete that
	// it is to the end.
	Shards   int  `json:"shards,omitempty"`
	Rows     int  `json:"rows,omitempty"`
	Items    int  `json:"items,omitempty"`
	Complete bool `json:"complete,omitempty"`
	// Answered are the last commands, with what came of them.
	Answered []Answer  `json:"answered,omitempty"`
	Finished time.Time `json:"finished,omitzero"`
}

// Answer is what came of a command.
type Answer struct {
	ID string `json:"id"`
	// Items is the number of items that were published again.
	Items int `json:"items"`
	// Error is one line for people; empty when it went well.
	Error string `json:"error,omitempty"`
}

// Validate reports the first field that is out of its range.
func (c *Campaign) Validate() error {
	switch {
	case c.Schema < 1 || c.Schema > RecordSchema:
		return fmt.Errorf("schema: this program reads records up to version %d, the campaign has %d; use one version of ddiff everywhere",
			RecordSchema, c.Schema)
	case c.ID == "":
		return errors.New("id: it is missing")
	case c.Output == "":
		return errors.New("output: it is missing")
	case c.Canary < 0:
		return fmt.Errorf("canary: %d is negative", c.Canary)
	case c.Weight < 1 || c.Weight > MaxWeight:
		return fmt.Errorf("weight: %d is outside 1..%d", c.Weight, MaxWeight)
	}
	for _, p := range Priorities() {
		if c.Priority == p {
			return nil
		}
	}
	return fmt.Errorf("priority: %q is none of high, normal, low", c.Priority)
}

// Open tells whether workers may take items of the campaign.
func (c *Campaign) Open() bool {
	return c.Wanted == WantRun && (c.Phase == PhasePreflight || c.Phase == PhaseCanary || c.Phase == PhaseRunning)
}

// Counts says where the items of a manifest are. Items is the sum of the others.
type Counts struct {
	Items     int `json:"items"`
	Pending   int `json:"pending"`
	Running   int `json:"running"`
	Done      int `json:"done"`
	Failed    int `json:"failed"`
	Dead      int `json:"dead"`
	Cancelled int `json:"cancelled"`
}

// Status is what the coordinator tells about a campaign from time to time.
type Status struct {
	ID     string    `json:"id"`
	Phase  Phase     `json:"phase"`
	Reason string    `json:"reason,omitempty"`
	Counts Counts    `json:"counts"`
	At     time.Time `json:"at"`
	// Rate is the number of items that reached a final state per second, lately.
	Rate float64 `json:"rate"`
	// Left, LeftLow and LeftHigh are the expected remaining seconds and their 95 %
	// interval; zero while they are not known.
	Left     float64 `json:"left_s,omitempty"`
	LeftLow  float64 `json:"left_low_s,omitempty"`
	LeftHigh float64 `json:"left_high_s,omitempty"`
	// Workers is the number of workers that were seen lately.
	Workers int `json:"workers"`
	// Complete tells whether the manifest has been read to its end: before that Items
	// still grows.
	Complete bool `json:"complete"`
}

// Beat is what a worker tells about itself every few seconds.
type Beat struct {
	Name     string    `json:"name"`
	Version  string    `json:"version"`
	Schema   int       `json:"schema"`
	Provider string    `json:"provider"`
	Device   string    `json:"device"`
	Campaign string    `json:"campaign,omitempty"` // the last one that it worked on
	Items    int       `json:"items"`              // settled since its start
	Draining bool      `json:"draining,omitempty"`
	At       time.Time `json:"at"`
}

// Cluster is what a coordinator tells every worker.
type Cluster struct {
	Schema int `json:"schema"`
	// Store is the address of the store, as in s3://results?endpoint=URL.
	Store string `json:"store"`
	// AckWait is how long a lease lasts.
	AckWait time.Duration `json:"ack_wait_ns"`
}

// The keys of the records that coordinators, workers and the command line share.
const (
	KeyCluster        = "cluster"
	KeyCampaignPrefix = "campaign." // + campaign id: Campaign
	KeyStatusPrefix   = "status."   // + campaign id: Status
	KeyWorkerPrefix   = "worker."   // + worker name as a token: Beat
)

// ClassPreflight is the queue class of the item by which a worker checks a campaign before
// its items are handed out.
const ClassPreflight = "preflight"

// Preflight is the payload of that item, and IDPreflight its id.
type Preflight struct {
	Campaign string `json:"campaign"`
	// Items are one item for each task, method and size that the first shard has.
	Items []Item `json:"items"`
}

// Checked is the outcome of a preflight.
type Checked struct {
	// Worker names who checked.
	Worker string `json:"worker"`
	// Checks are those that passed, in order, each with what was found.
	Checks []Check `json:"checks"`
	// Failed names the check that failed; empty when all passed. Reason says why.
	Failed string `json:"failed,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Check is one check that passed.
type Check struct {
	Name  string `json:"name"`
	Found string `json:"found"`
}

// IDPreflight is the queue id of the preflight.
const IDPreflight = "preflight"
