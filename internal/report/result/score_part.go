package result

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"

	"ddiff/restore/item"
)

// ScoresFolder is the prefix of scores that were computed after solving: scores/METRIC/PART.jsonl. The first line of a part
// is a [ScoreHead], each further line a [item.Score]. METRIC is [ScoreFolderName] of the metric's id, PART the beginning of the
// SHA-256 of the part's bytes. Parts are written once and never replaced; a score that is in several counts once.
const ScoresFolder = "scores/"

// FailuresFolder is the prefix of the lists of failed and dead items: failures/CAMPAIGN/NNNN.jsonl, one [item.Result]
// per line, and [FileLeftOut]. The report of a campaign replaces its lists.
const FailuresFolder = "failures/"

// ScoreFolderName returns the id of a metric as an element of a key: a colon becomes a comma, which Windows allows too.
func ScoreFolderName(metric string) string { return strings.ReplaceAll(metric, ":", ",") }

// ScorePartName returns the name of a part, without its folder.
func ScorePartName(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]) + ".jsonl"
}

// CheckScorePart returns an error for a part with this key whose bytes were changed.
func CheckScorePart(key string, data []byte) error {
	name := ScorePartName(data)
	if path.Base(key) == name {
		return nil
	}
	return fmt.Errorf("it was changed: its content has the name %s; put the original back, or move the file away and run ddiff score again", name)
}

// ScoreHead describes the scores of one part.
type ScoreHead struct {
	// Metric is the versioned id, such as "haarpsi@1:png" or "lpips_alex@1:1f2e3d4c".
	Metric string `json:"metric"`
	// SHA256 is the digest of the metric's network, File its name; empty for a metric without one.
	SHA256 string `json:"sha256,omitempty"`
	File   string `json:"file,omitempty"`
	// Version is the ddiff version.
	Version string `json:"version"`
}

// ScoredPictures identifies the stored pictures of a result that scores compare, truth.png and restored.png, by 128 bits in
// hexadecimal. A score of other pictures does not belong to the result. It is empty if the result lacks one of them.
func ScoredPictures(r *item.Result) string {
	truth, restored := r.Artifacts[item.FileTruth], r.Artifacts[item.FileRestored]
	if truth == "" || restored == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(truth + " " + restored))
	return hex.EncodeToString(sum[:16])
}
