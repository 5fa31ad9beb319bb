package item

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"ddiff/restore/parameter"
)

// Outcome is the final state of an item.
type Outcome string

// The final states. Every manifest entry ends in exactly one of them.
const (
	// OutcomeDone: restored and written.
	OutcomeDone Outcome = "done"
	// OutcomeFailed: the input cannot be restored; another attempt would not help.
	OutcomeFailed Outcome = "failed"
	// OutcomeDead: not restored within the allowed number of attempts.
	OutcomeDead Outcome = "dead"
)

// Metrics holds the scores of one item by the names of the metrics, those of the degraded image with baseline_ before them, and [NoiseVariance]. An
// undefined one is absent, as those of a comparison without a ground truth.
type Metrics map[string]float64

// NoiseVariance is the mean variance of the noise, estimated from y, of an item with photons. Without photons it is absent: it is sigma^2.
const NoiseVariance = "noise_variance"

// Of returns a score, NaN if it is undefined.
func (m Metrics) Of(name string) float64 {
	if v, ok := m[name]; ok {
		return v
	}
	return math.NaN()
}

// Has reports whether the scores are defined.
func (m Metrics) Has(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return math.IsNaN(m.Of(name)) })
}

// Runtime records the computing environment of a result.
type Runtime struct {
	// Library is the version that ONNX Runtime reports.
	Library string `json:"library"`
	// Provider is the execution provider: "cpu", "cuda", ...
	Provider string `json:"provider"`
	Device   string `json:"device,omitempty"`
	Threads  int    `json:"threads,omitempty"`
	// Options holds the settings of session and provider, in the library's terms.
	Options map[string]string `json:"options,omitempty"`
	// Precision is the arithmetic of the score network; empty if it is not recorded.
	Precision parameter.Precision `json:"precision,omitempty"`
	// Streams is the largest permitted number of parts of a batch that are computed beside each other, with a share of the threads each.
	Streams int `json:"streams,omitempty"`
	// Form is that of the score network; empty: as exported.
	Form string `json:"form,omitempty"`
	// Version is the ddiff version.
	Version string `json:"version"`
}

// Equal reports whether two results have equal known environments.
func (r Runtime) Equal(other Runtime) bool { return reflect.DeepEqual(r, other) }

// Result is the content of result.json.
type Result struct {
	Schema  int     `json:"schema"`
	Item    Item    `json:"item"`
	Outcome Outcome `json:"outcome"`
	// Reason is one line that explains an Outcome other than done.
	Reason string `json:"reason,omitempty"`

	Metrics Metrics `json:"metrics,omitempty"`
	// Warnings are reasons to doubt a result that is done.
	Warnings []Warning `json:"warnings,omitempty"`
	// MetricIDs maps the name of a metric to its versioned id.
	MetricIDs map[string]string `json:"metric_ids,omitempty"`
	// Scores were computed after solving, see the folder scores; one without a value does not apply. They are not in result.json.
	Scores []Score `json:"-"`

	// Seconds is the item's share of the solver time of its batches, those before a checkpoint included; Steps is the number
	// of the method's steps.
	Seconds float64 `json:"seconds"`
	Steps   int     `json:"steps"`
	Cost    Cost    `json:"cost,omitzero"`
	// Batch is the number of items in the batch.
	Batch int `json:"batch,omitempty"`

	// Artifacts maps a file name beside result.json to its SHA-256.
	Artifacts map[string]string `json:"artifacts,omitempty"`
	// Replaces names the files of other attempts that those of this result replace, see [StagedKey].
	Replaces []string `json:"replaces,omitempty"`
	Runtime  Runtime  `json:"runtime"`
	Worker   string   `json:"worker,omitempty"`
	// Pool is the worker's pool, on a cluster.
	Pool     string    `json:"pool,omitempty"`
	Attempt  int       `json:"attempt,omitempty"`
	TraceID  string    `json:"trace_id,omitempty"`
	Finished time.Time `json:"finished"`
	// Log holds the last lines of the worker's log about the item up to its result, on a cluster.
	Log []string `json:"log,omitempty"`
}

// Event is the content of the result event of an item: the part of a Result that the coordinator needs. Its item is
// named by the message.
type Event struct {
	Outcome Outcome `json:"outcome"`
	// Reason explains an Outcome other than done.
	Reason   string    `json:"reason,omitempty"`
	Finished time.Time `json:"finished"`
	// Seconds is the item's share of the solver time of the batches that led to the outcome, in device-seconds: 0 for a result that was
	// found. The time of attempts that were retried or interrupted without a checkpoint is not in it.
	Seconds float64 `json:"seconds,omitempty"`
	// Pool is the pool of the worker, which has the price.
	Pool string `json:"pool,omitempty"`
}

// Event returns the result event of r, which took so many device-seconds. The time has a precision of a millisecond, the seconds of a microsecond.
func (r *Result) Event(seconds float64) Event {
	return Event{Outcome: r.Outcome, Reason: r.Reason, Finished: r.Finished.Truncate(time.Millisecond), Seconds: math.Round(seconds*1e6) / 1e6}
}

// The files of an item. Their keys are Key(id, name).
const (
	FileResult      = "result.json"
	FileTrace       = "trace.json"
	FileTruth       = "truth.png"
	FileMeasurement = "measurement.png"
	FileData        = "measurement.npy"
	FileRestored    = "restored.png"
	// FileUnclipped is the restored image of an item with [Item.Unclipped], float32 [channels, rows, columns]; black is -1, white 1.
	FileUnclipped = "restored.npy"
	// FileStates has the images of an item with [Item.KeepStates] between its steps, float32 [states, channels, rows, columns]; FileStatesSheet shows them.
	FileStates      = "states.npy"
	FileStatesSheet = "states.png"
)

// Key returns the storage key of one file of an item.
func Key(id, file string) string { return ItemsFolder + id + "/" + file }

// CheckpointsFolder is the prefix of the keys of all checkpoints, and of staged files.
const CheckpointsFolder = "checkpoints/"

// StagedKey returns the storage key of a file with a SHA-256, of an item whose folder has a file of that name of another attempt. It is there until
// it has replaced the other one, which happens after the result has been stored.
func StagedKey(id, sha256 string) string { return CheckpointsFolder + id + "." + sha256 }

// ResultOf returns the identity of the item whose result has a key.
func ResultOf(key string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(key, ItemsFolder)
	id, file, _ := strings.Cut(rest, "/")
	return id, ok && file == FileResult
}

// ItemsFolder is the prefix of the keys of all items.
const ItemsFolder = "items/"

// Cost counts the work for one item. It does not depend on the batch or the worker. The zero Cost is unknown: results of earlier
// versions have none.
type Cost struct {
	// Network counts evaluations of the score network, NetworkBackward the backward passes through it.
	Network         int `json:"network"`
	NetworkBackward int `json:"network_backward"`
	// Operator counts calls of the measurement operator: A(x), and products with its Jacobian.
	Operator int `json:"operator"`
	// Autoencoder counts evaluations of encoder and decoder of a latent prior, AutoencoderBackward the backward passes
	// through them.
	Autoencoder         int `json:"autoencoder"`
	AutoencoderBackward int `json:"autoencoder_backward"`
}

// Evaluations returns the number of network evaluations of a result: its steps if the cost is unknown, as in results of
// earlier versions, whose methods make one per step.
func (r *Result) Evaluations() int {
	if r.Cost == (Cost{}) {
		return r.Steps
	}
	return r.Cost.Network
}

// Warning is a reason to doubt a result that was restored.
type Warning struct {
	// Code is a word such as "sigma", see the table of docs/restore.md.
	Code string `json:"code"`
	// Text is one line for people, with figures and their bound.
	Text string `json:"text"`
}

// WarningCodes joins the codes of warnings, in order, with semicolons.
func WarningCodes(warnings []Warning) string {
	codes := make([]string, len(warnings))
	for i, w := range warnings {
		codes[i] = w.Code
	}
	return strings.Join(codes, ";")
}

// Score is the score of one item after solving.
type Score struct {
	// Metric is the id in the head of the part.
	Metric string `json:"-"`
	Item   string `json:"item"`
	// Pictures is the digest of the two pictures that were compared.
	Pictures string `json:"pictures"`
	// Value is nil if the metric does not apply to the pictures; Reason explains it.
	Value  *float64 `json:"value,omitempty"`
	Reason string   `json:"reason,omitempty"`
}

// DecodeResult decodes a result.json, without its digest. Unknown fields are ignored; the error for a higher schema is ErrNewer.
func DecodeResult(data []byte) (r Result, err error) {
	if err = CheckSchema(data); err == nil {
		err = json.Unmarshal(data, &r)
	}
	return r, err
}

// CheckSchema returns ErrNewer for a message or a result of a higher schema, whose other fields may have another form.
func CheckSchema(data []byte) error {
	var version struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return err
	}
	if version.Schema > SchemaVersion {
		return fmt.Errorf("%w: schema is %d, this version knows %d; use that version", ErrNewer, version.Schema, SchemaVersion)
	}
	return nil
}

// ErrResultDigest: a result.json differs from its digest, or has none, because it was changed or damaged.
var ErrResultDigest = errors.New("the file differs from its sha256")

// The last member of result.json is the SHA-256 of the compact JSON of the other members.
const (
	digestBegin = `,"sha256":"`
	digestEnd   = `"}`
	digestSize  = 2 * sha256.Size
)

// EncodeResult returns the content of result.json, with a digest of all fields as its last member.
func EncodeResult(r *Result) ([]byte, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode result of item %s: %w", r.Item.ID, err)
	}
	sum := sha256.Sum256(data)
	data = append(data[:len(data)-1], digestBegin+hex.EncodeToString(sum[:])+digestEnd...)
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		return nil, fmt.Errorf("encode result of item %s: %w", r.Item.ID, err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// CheckResult compares a result.json with its digest. It returns ErrResultDigest if they differ. White space does not count.
func CheckResult(data []byte) error {
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return fmt.Errorf("%w: %w", ErrResultDigest, err)
	}
	all := compact.Bytes()
	at := len(all) - len(digestEnd) - digestSize
	if at < len(digestBegin) || !bytes.HasSuffix(all[:at], []byte(digestBegin)) {
		return fmt.Errorf("%w: its sha256 is not the last member, or is cut", ErrResultDigest)
	}
	sum := sha256.Sum256(append(bytes.Clone(all[:at-len(digestBegin)]), '}'))
	if got := string(all[at : at+digestSize]); got != hex.EncodeToString(sum[:]) {
		return fmt.Errorf("%w: %.12s, its content has %.12s", ErrResultDigest, got, hex.EncodeToString(sum[:]))
	}
	return nil
}
