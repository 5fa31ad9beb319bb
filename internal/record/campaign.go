package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ddiff/manifest"
	"ddiff/restore/item"
)

// Schema is the version of [Campaign] and of the messages between coordinator and worker. A
// program refuses records of a higher version.
const Schema = 1

// Priority is the class of a campaign. Workers lease no item of a lower class while a higher class has any,
// except for preflights.
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

// Wanted is the state that users request for a campaign.
type Wanted string

// The requests.
const (
	WantRun       Wanted = "run"
	WantPause     Wanted = "pause"      // lease no more items; items in flight finish
	WantCancel    Wanted = "cancel"     // drop pending items; items in flight finish
	WantCancelNow Wanted = "cancel_now" // drop all items; workers stop after the next step
)

// Phase is the state of a campaign, which its coordinator writes.
type Phase string

// The phases, in the usual order.
const (
	PhaseQueued    Phase = "queued"    // submitted, not yet started by a coordinator
	PhasePreflight Phase = "preflight" // one worker checks prior, operators, shapes and memory
	PhaseCanary    Phase = "canary"    // the first items run alone
	PhaseRunning   Phase = "running"   // items are published and leased
	PhasePaused    Phase = "paused"
	PhaseFinished  Phase = "finished"  // every item has its final state
	PhaseCancelled Phase = "cancelled" // items without a final state are cancelled
	PhaseRejected  Phase = "rejected"  // a check failed, see Reason
)

// Ended reports whether the campaign stays as it is until a user requests a change.
func (p Phase) Ended() bool {
	return p == PhaseFinished || p == PhaseCancelled || p == PhaseRejected
}

// PriorsFolder is the prefix of the keys of priors and operator files in the store of a cluster: priors/SHA256.onnx.
const PriorsFolder = "priors/"

// PriorFile names the prior of a campaign.
type PriorFile struct {
	// Key is the prior's key below the cluster's store; empty for the bundled prior.
	Key string `json:"key,omitempty"`
	// SHA256 is the lower-case hex digest of the file.
	SHA256 string `json:"sha256"`
	// Name and License come from the model card.
	Name    string `json:"name"`
	License string `json:"license"`
}

// Opened reports whether a coordinator has opened the prior: before, the digest is what the submission says.
func (f PriorFile) Opened() bool { return f.Key != "" || f.Name != "" }

// OperatorFile names an operator file of a campaign.
type OperatorFile struct {
	// Path is [item.Task.Operator].
	Path string `json:"path"`
	// Key is the file's key below the cluster's store; empty until the coordinator has copied it there.
	Key string `json:"key,omitempty"`
	// SHA256 is the lower-case hex digest of the file.
	SHA256 string `json:"sha256"`
}

// Campaign is the record of a submitted campaign, shared by coordinators, workers and commands. The leading coordinator alone writes it. The
// store has what was submitted and each later state, see package board.
type Campaign struct {
	Schema int           `json:"schema"`
	ID     string        `json:"id"`
	Spec   manifest.Spec `json:"spec"`
	// Output is the prefix of the results in the cluster's store.
	Output   string   `json:"output"`
	Priority Priority `json:"priority"`
	// Weight is the campaign's share of the workers within its class, 1..1000.
	Weight int `json:"weight"`
	// Canary is the number of items that run alone before all others.
	Canary int `json:"canary"`
	// Urgent: the leader expected that the campaign would miss its deadline, see Share.
	Urgent    bool      `json:"urgent,omitempty"`
	Submitted time.Time `json:"submitted"`
	// Owner is the owner of the token that submitted the campaign; empty for a submission without a token.
	Owner  string `json:"owner,omitempty"`
	Wanted Wanted `json:"wanted"`
	// Number counts the states of the submission: the store has each number once.
	Number int   `json:"number,omitempty"`
	Phase  Phase `json:"phase"`
	// Reason is one line that explains a rejection, or a pause that no user requested.
	Reason string `json:"reason,omitempty"`
	// Prior has the digest alone, of the file on the machine of the submission if that has it, until a coordinator has opened it.
	Prior PriorFile `json:"prior,omitzero"`
	// Operators are the operator files of the tasks.
	Operators []OperatorFile `json:"operators,omitempty"`
	// Released: preflight and canary have passed.
	Released bool `json:"released,omitempty"`
	// Round counts the republications of items. It is part of the message ids by which the queue detects duplicates.
	Round int `json:"round,omitempty"`
	// Finished is the time of the last end, and Last the status then; a campaign may be resumed.
	Finished time.Time `json:"finished,omitzero"`
	Last     *Status   `json:"last,omitempty"`
	// Changes counts the changes of the phase. It names a notification.
	Changes int `json:"changes,omitempty"`
	// Start counts the starts of the campaign until a coordinator has read its dataset.
	Start *Start `json:"start,omitempty"`
}

// Start counts the starts of a campaign that may have ended a coordinator: those since the last stored window, without those that a
// coordinator has taken back because it has survived them.
type Start struct {
	Count int `json:"count"`
	// Process identifies the process of the last start; empty if that start was taken back.
	Process string `json:"process,omitempty"`
	// Parked: the campaign is rejected because of its starts. A person may resume it.
	Parked bool `json:"parked,omitempty"`
	// Coordinator and At describe the last start, for people.
	Coordinator string    `json:"coordinator"`
	At          time.Time `json:"at"`
}

// DecodeCampaign decodes and checks the record of a campaign.
func DecodeCampaign(id string, data []byte) (*Campaign, error) {
	var c Campaign
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.ID != id {
		return nil, fmt.Errorf("it belongs to campaign %s", c.ID)
	}
	return &c, nil
}

// Validate returns an error that names the first field out of its range.
func (c *Campaign) Validate() error {
	switch {
	case c.Schema < 1 || c.Schema > Schema:
		return fmt.Errorf("schema: this program reads records up to version %d, the campaign has %d; use one version of ddiff everywhere",
			Schema, c.Schema)
	case c.ID == "":
		return errors.New("id: is missing")
	case c.Output == "":
		return errors.New("output: is missing")
	case c.Canary < 0:
		return fmt.Errorf("canary: %d is negative", c.Canary)
	case min(c.Round, c.Number) < 0:
		return fmt.Errorf("round or number is negative: %d, %d", c.Round, c.Number)
	case c.Weight < 1 || c.Weight > MaxWeight:
		return fmt.Errorf("weight: %d is outside 1..%d", c.Weight, MaxWeight)
	}
	if !slices.Contains(Priorities(), c.Priority) {
		return fmt.Errorf("priority: %q is none of high, normal, low", c.Priority)
	}
	if c.Spec.Precision == manifest.PrecisionAuto {
		return errors.New("precision: auto is for ddiff run; give float32, bfloat16 or float16, or leave it out for the default of each worker")
	}
	return nil
}

// IndexFolder has the index of the campaigns of a store, see package index.
const IndexFolder = "campaigns/.index/"

// Tombstone is the key in the store that remembers for ever that this submission was deleted.
func (c *Campaign) Tombstone() string {
	return fmt.Sprintf("%s%s.deleted.%d", IndexFolder, c.ID, c.Submitted.UnixNano())
}

// CheckOutput returns an error if the output is a folder with the records of ddiff: results there would be garbage to ddiff gc, and
// out of the reach of workers.
func (c *Campaign) CheckOutput() error {
	switch top, _, _ := strings.Cut(c.Output, "/"); top {
	case "campaigns", "coordinators", "priors", ".ddiff":
		return fmt.Errorf("output: the folder %s of the store has the records of ddiff", top)
	}
	return nil
}

// CheckOwner returns an error for an owner who would own a folder of ddiff: an owner has the folder of its name in the store.
func CheckOwner(owner string) error {
	if strings.HasPrefix(owner, ".") || (&Campaign{Output: owner}).CheckOutput() != nil {
		return fmt.Errorf("%q, which is no name of an owner: it is a folder of the store", owner)
	}
	return nil
}

// Share is the campaign's share of the workers within its class: its weight, or the largest one if it is urgent.
func (c *Campaign) Share() int {
	if c.Urgent {
		return MaxWeight
	}
	return c.Weight
}

// MayUse reports whether workers of a pool may lease items of the campaign.
func (c *Campaign) MayUse(pool string) bool { return c.Spec.Pool == "" || c.Spec.Pool == pool }

// Open reports whether workers may lease items of the campaign.
func (c *Campaign) Open() bool {
	return c.Wanted == WantRun && (c.Phase == PhasePreflight || c.Phase == PhaseCanary || c.Phase == PhaseRunning)
}

// Counts holds the number of items in each state. Items is the sum of the others.
type Counts struct {
	Items     int `json:"items"`
	Pending   int `json:"pending"`
	Running   int `json:"running"`
	Done      int `json:"done"`
	Failed    int `json:"failed"`
	Dead      int `json:"dead"`
	Cancelled int `json:"cancelled"`
}

// Status is the periodic report of the coordinator on a campaign.
type Status struct {
	ID    string `json:"id"`
	Phase Phase  `json:"phase"`
	// TraceID is the campaign's trace, 32 hex digits.
	TraceID string `json:"trace_id,omitempty"`
	// Reason is one line that explains a rejection.
	Reason string `json:"reason,omitempty"`
	// Warning is one line about the campaign's items, for example that the dataset changed while it was read.
	Warning string    `json:"warning,omitempty"`
	Counts  Counts    `json:"counts"`
	At      time.Time `json:"at"`
	// Rate is the recent number of items per second that reach a final state.
	Rate float64 `json:"rate"`
	// Left, LeftLow and LeftHigh are the expected remaining seconds and their 95 % interval; zero while unknown.
	Left     float64 `json:"left_s,omitempty"`
	LeftLow  float64 `json:"left_low_s,omitempty"`
	LeftHigh float64 `json:"left_high_s,omitempty"`
	// Late is what is known about the deadline; empty: it is met, or nothing is known.
	Late Late `json:"late,omitempty"`
	// Workers is the number of live workers of the campaign's pool.
	Workers int `json:"workers"`
	// Ended is the number of workers, of all pools, that this leader has seen end without a word.
	Ended int `json:"workers_ended,omitempty"`
	// Seconds is the number of device-seconds that the outcomes took, see [item.Event.Seconds], and Cost what they cost at the coordinator's
	// prices; 0 without a price.
	Seconds float64 `json:"device_seconds,omitempty"`
	Cost    float64 `json:"cost,omitempty"`
	// Uses are the parts of Seconds and Cost by month and pool.
	Uses []Use `json:"uses,omitempty"`
	// Problem is what delays the campaign at the moment, such as an outage of the store or of the dataset; empty if nothing does.
	Problem string `json:"problem,omitempty"`
	// Complete: the manifest is read to its end. Before, Items still grows.
	Complete bool `json:"complete"`
	// Windows is the number of windows of items that the queue has had; 0: unknown, or none.
	Windows int `json:"windows,omitempty"`
}

// CampaignStatus is a campaign and its last status.
type CampaignStatus struct {
	Campaign *Campaign `json:"campaign"`
	Status   Status    `json:"status"`
	// Archived is the time of archiving, zero for a campaign of the board.
	Archived time.Time `json:"archived,omitzero"`
}

// Beat is the heartbeat of a worker, every few seconds.
type Beat struct {
	Name string `json:"name"`
	// Pool is that of the worker; empty: DefaultPool.
	Pool     string `json:"pool,omitempty"`
	Version  string `json:"version"`
	Schema   int    `json:"schema"`
	Provider string `json:"provider"`
	Device   string `json:"device"`
	// Precisions are those in which the worker computes a network.
	Precisions []manifest.Precision `json:"precisions,omitempty"`
	Campaign   string               `json:"campaign,omitempty"` // of the last lease
	Items      int                  `json:"items"`              // settled since its start
	Held       int                  `json:"held,omitempty"`     // leased and not settled
	// Solving is the batch on the device; nil for none.
	Solving  *Solving `json:"solving,omitempty"`
	Draining bool     `json:"draining,omitempty"`
	Hung     string   `json:"hung,omitempty"` // the stage that exceeded its limit; the worker ends
	// Suspended is the reason why the worker leases nothing, or nothing of SuspendedCampaign, until its environment
	// passes a test; empty otherwise.
	Suspended         string `json:"suspended,omitempty"`
	SuspendedCampaign string `json:"suspended_campaign,omitempty"`
	// Refused maps the ids of open campaigns that the worker cannot process to the reasons.
	Refused map[string]string `json:"refused,omitempty"`
	// Started is the start of the worker by its clock: it tells processes of the same name apart.
	Started time.Time `json:"started,omitzero"`
	// At is the time of the beat by the worker's clock, for people.
	At time.Time `json:"at"`
	// Age is the number of seconds since the beat by the clock of the queue server. Readers of the board set it.
	Age float64 `json:"age_s,omitempty"`
}

// BeatLife is how long a worker counts as live after its last beat.
const BeatLife = 30 * time.Second

// Silent reports whether the worker is frozen, lost or cut off from NATS, for all that its last beat says.
func (b Beat) Silent() bool { return b.Age >= BeatLife.Seconds() }

// Solving is the progress of a batch after its last step.
type Solving struct {
	Campaign string `json:"campaign"`
	Step     int    `json:"step"` // made, of Steps
	Steps    int    `json:"steps"`
	// Rate is the number of steps in a second, of all images of the batch together; 0 before the second step.
	Rate float64 `json:"rate,omitempty"`
	// Items are the first ones of the batch.
	Items []SolvingItem `json:"items"`
}

// SolvingItem is an item of a batch on the device.
type SolvingItem struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// DataNorm has the method's curve of that name, the distance to the measurement, at the steps Stride, 2·Stride and so on. It is empty
	// for a method without the curve.
	DataNorm []float32 `json:"data_norm,omitempty"`
	Stride   int       `json:"stride,omitempty"`
}

// CoordinatorBeat is the heartbeat of a coordinator, every few seconds.
type CoordinatorBeat struct {
	// Name is the coordinator's name; ID distinguishes two processes with the same name.
	Name string `json:"name"`
	ID   string `json:"id"`
	// Store is the reason why the coordinator cannot use the store; empty if it can.
	Store string `json:"store,omitempty"`
	// Leading: it led when it wrote the beat.
	Leading bool `json:"leading,omitempty"`
	// Compared: it knows that a leader has compared the board with the store.
	Compared bool `json:"compared,omitempty"`
	// At is the time of the beat by the coordinator's clock, for people.
	At time.Time `json:"at"`
	// Age is the number of seconds since the beat by the clock of the queue server. Readers of the board set it.
	Age float64 `json:"age_s,omitempty"`
}

// Cluster is the coordinator's record for all workers.
type Cluster struct {
	Schema int `json:"schema"`
	// ID names the cluster, also in its store.
	ID string `json:"id,omitempty"`
	// Store is the address of the store, as in s3://results?endpoint=URL.
	Store string `json:"store"`
	// AckWait is the duration of a lease.
	AckWait time.Duration `json:"ack_wait_ns"`
}

// DecodeCluster decodes and checks the record of a cluster. A newer schema is named even if a field has another type.
func DecodeCluster(data []byte) (c Cluster, err error) {
	if err = json.Unmarshal(data, &c); err == nil || c.Schema > Schema {
		err = c.validate()
	}
	return c, err
}

// validate returns an error that names the first field out of its range.
func (c Cluster) validate() error {
	switch {
	case c.Schema < 1 || c.Schema > Schema:
		return fmt.Errorf("schema: this program reads records up to version %d, the coordinator's have %d; use one version of ddiff everywhere",
			Schema, c.Schema)
	case c.Store == "":
		return errors.New("store: is missing")
	case c.AckWait <= 0:
		return fmt.Errorf("ack_wait_ns: %d is not above 0", c.AckWait)
	}
	return nil
}

// The keys of the records that coordinators, workers and the command line share.
const (
	KeyCluster        = "cluster"
	KeyCampaignPrefix = "campaign." // + campaign id: Campaign
	KeyStatusPrefix   = "status."   // + campaign id: Status
	KeyWorkerPrefix   = "worker."   // + worker name as a token: Beat
	KeyTokenPrefix    = "token."    // + SHA-256 of the secret of an access token: board.Token

	KeyCoordinatorPrefix = "coordinator." // + coordinator name as a token: CoordinatorBeat
)

// ClassPreflight is the queue class of the preflight item, with which a worker checks a campaign
// before its items are leased.
const ClassPreflight = "preflight"

// Preflight is the payload of that item, and IDPreflight its id.
type Preflight struct {
	// Schema is SchemaVersion. 0, of earlier versions, is 1.
	Schema   int    `json:"schema,omitempty"`
	Campaign string `json:"campaign"`
	// Items holds one item for each task, method and size of the first shard.
	Items []item.Item `json:"items"`
}

// Checked is the outcome of a preflight.
type Checked struct {
	// Worker is the name of the worker that checked.
	Worker string `json:"worker"`
	// Checks are the passed checks in order, with their findings.
	Checks []Check `json:"checks"`
	// Failed names the failed check; empty if all passed. Reason is its cause.
	Failed string `json:"failed,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// CheckedByNone is the failed check of a preflight whose workers have ended without an answer.
const CheckedByNone = "worker"

// Check is one passed check.
type Check struct {
	Name  string `json:"name"`
	Found string `json:"found"`
}

// Fault is a worker's report that its environment has failed for long and needs a person.
type Fault struct {
	Worker string `json:"worker"`
	Reason string `json:"reason"`
	// Seconds is the time without a finished item after which the campaign should pause. The environment has failed for
	// longer.
	Seconds float64   `json:"seconds"`
	At      time.Time `json:"at"`
}

// IDFault is the id of the event of a Fault.
const IDFault = "fault"

// IDPreflight is the queue id of the preflight.
const IDPreflight = "preflight"
