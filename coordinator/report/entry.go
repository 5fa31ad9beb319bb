package report

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"ddiff/manifest"
)

// entry is the part of a result that the report uses. Its fields are exported for package gob.
type entry struct {
	// TaskRank is the position of the task in the order of tables.
	TaskRank               int
	ID, Name, Task, Method string
	Run, Index             int
	Sigma                  float64
	Seed                   uint64
	Width, Height          int
	Outcome                manifest.Outcome
	Reason                 string
	Scores                 scores
	Steps                  int
	Provider               string
	// Files are the artifacts of the item that the report may read.
	Files []string
	// Target is a digest of the restored measurement and its image's name: methods are compared on equal targets.
	// Setting is a digest of the target, the solver's settings and the prior. Both have 16 bytes.
	Target, Setting string
}

// newEntry returns an error when the outcome is unknown or the item has no identity.
func newEntry(r *manifest.Result) (*entry, error) {
	it := &r.Item
	switch r.Outcome {
	case manifest.OutcomeDone, manifest.OutcomeFailed, manifest.OutcomeDead:
	default:
		return nil, fmt.Errorf("read item %q: outcome %q is none of done, failed, dead", it.Name, r.Outcome)
	}
	measurement, err := it.MeasurementKey()
	if err != nil {
		return nil, fmt.Errorf("identify measurement of item %q: %w", it.Name, err)
	}
	e := &entry{
		ID: it.ID, Name: it.Name, Task: it.Task, Method: it.Method, Run: it.Run, Index: it.Index,
		Sigma: it.Sigma, Seed: it.Seed, Width: it.Width, Height: it.Height,
		Outcome: r.Outcome, Reason: r.Reason, Scores: scoresOf(r), Steps: r.Steps, Provider: r.Runtime.Provider,
	}
	for _, file := range []string{manifest.FileTruth, manifest.FileMeasurement, manifest.FileRestored, manifest.FileTrace} {
		if _, ok := r.Artifacts[file]; ok {
			e.Files = append(e.Files, file)
		}
	}
	e.Target = shortDigest(it.Name, string(measurement[:]))
	e.Setting = shortDigest(e.Target, string(it.Solver), it.Prior)
	return e, nil
}

func shortDigest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return string(h.Sum(nil)[:16])
}

func (e *entry) done() bool { return e.Outcome == manifest.OutcomeDone }

// has reports whether the result lists the file as written.
func (e *entry) has(file string) bool { return slices.Contains(e.Files, file) }

// compareEntries is the order of every output: task, method, image name in natural order, run. The other fields only
// separate rows that are equal in these.
func compareEntries(a, b *entry) int {
	return cmp.Or(
		cmp.Compare(a.TaskRank, b.TaskRank),
		strings.Compare(a.Task, b.Task),
		strings.Compare(a.Method, b.Method),
		compareNatural(a.Name, b.Name),
		cmp.Compare(a.Run, b.Run),
		cmp.Compare(a.Sigma, b.Sigma),
		cmp.Compare(a.Seed, b.Seed),
		cmp.Compare(a.Index, b.Index),
		strings.Compare(a.ID, b.ID),
	)
}
