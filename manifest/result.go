package manifest

import (
	"reflect"
	"time"
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

// Metrics holds the scores of one item. Nil: undefined, as without a ground truth.
type Metrics struct {
	// PSNR in dB on [0, 1], metric id "psnr@1".
	PSNR *float64 `json:"psnr,omitempty"`
	// SSIM, metric id "ssim@1".
	SSIM *float64 `json:"ssim,omitempty"`
	// PSNRLuma in dB on the luma, metric id "psnr_y@1"; HaarPSI in [0, 1], metric id "haarpsi@1".
	PSNRLuma *float64 `json:"psnr_y,omitempty"`
	HaarPSI  *float64 `json:"haarpsi,omitempty"`
	// Residual is mean((y - A(x))^2) - NoiseVariance, over the observed entries of y, metric id "residual@2".
	Residual *float64 `json:"residual,omitempty"`
	// NoiseVariance is the mean variance of the noise, estimated from y, of an item with photons. Nil without photons: it is sigma^2.
	NoiseVariance *float64 `json:"noise_variance,omitempty"`
	// BaselinePSNR and BaselineSSIM score the degraded image itself (bicubic enlargement for
	// super-resolution). Nil if y is not an image.
	BaselinePSNR *float64 `json:"baseline_psnr,omitempty"`
	BaselineSSIM *float64 `json:"baseline_ssim,omitempty"`
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
	// Precision is the arithmetic of the score network: "fp32", "bf16" or "fp16".
	Precision string `json:"precision,omitempty"`
	// Form is the arrangement of the steps in the model ("loop", "unrolled" or "single"), K the
	// number of steps per call.
	Form string `json:"form,omitempty"`
	K    int    `json:"k,omitempty"`
	// Streams is the largest number of parts of a batch that were computed beside each other, with a share of the threads each.
	Streams int `json:"streams,omitempty"`
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

	Metrics Metrics `json:"metrics"`
	// Warnings are reasons to doubt a result that is done.
	Warnings []Warning `json:"warnings,omitempty"`
	// MetricIDs maps the name of a metric to its versioned id.
	MetricIDs map[string]string `json:"metric_ids,omitempty"`
	// Scores were computed after solving, see [ScoresFolder]; one without a value does not apply. They are not in result.json.
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
	Runtime   Runtime           `json:"runtime"`
	Worker    string            `json:"worker,omitempty"`
	Attempt   int               `json:"attempt,omitempty"`
	TraceID   string            `json:"trace_id,omitempty"`
	Finished  time.Time         `json:"finished"`
	// Log holds the last lines of the worker's log about the item up to its result, on a cluster.
	Log []string `json:"log,omitempty"`
}

// Event is the content of the result event of an item: the part of a Result that the coordinator needs. Its item is
// named by the message. A complete Result is a valid event too; earlier versions publish it.
type Event struct {
	Outcome Outcome `json:"outcome"`
	// Reason explains an Outcome other than done.
	Reason   string    `json:"reason,omitempty"`
	Finished time.Time `json:"finished"`
}

// Event returns the result event of r. Its time has a precision of a millisecond.
func (r *Result) Event() Event {
	return Event{Outcome: r.Outcome, Reason: r.Reason, Finished: r.Finished.Truncate(time.Millisecond)}
}

// The files of an item. Their keys are ItemKey(id, name).
const (
	FileResult      = "result.json"
	FileTrace       = "trace.json"
	FileTruth       = "truth.png"
	FileMeasurement = "measurement.png"
	FileData        = "measurement.npy"
	FileRestored    = "restored.png"
	// FileUnclipped is the restored image of an item with [Item.Unclipped], float32 [channels, rows, columns]; black is -1, white 1.
	FileUnclipped = "restored.npy"
)

// ItemKey returns the storage key of one file of an item.
func ItemKey(id, file string) string { return ItemsFolder + id + "/" + file }

const (
	// ItemsFolder is the prefix of the keys of all items.
	ItemsFolder = "items/"
	// FailuresFolder is the prefix of the lists of failed and dead items: failures/CAMPAIGN/NNNN.jsonl, one [Result]
	// per line. The report of a campaign replaces its lists.
	FailuresFolder = "failures/"
)
