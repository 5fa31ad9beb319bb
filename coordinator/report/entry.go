package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ddiff/manifest"
)

// entry is the part of a result that the report uses. Its fields are exported for package gob.
type entry struct {
	// TaskRank is the position of the task in the order of tables.
	TaskRank int
	Problem
	Approach
	ID, Name, Preset string
	Run, Index       int
	// Noise is the noise level of the measurement, also where Sigma is auto.
	Noise         float64
	Seed          uint64
	Width, Height int
	Fit           string
	Outcome       manifest.Outcome
	Reason        string
	// Warnings has the codes of the result's warnings.
	Warnings string
	// NoiseVariance is the mean variance of the noise of an item with photons, NaN if it is unknown.
	NoiseVariance float64
	Scores        scores
	// Scored are further scores by index in columns.ids.
	Scored map[int]float64
	Steps  int
	Cost   manifest.Cost
	// Evaluations counts those of the network.
	Evaluations int
	Provider    string
	// Used is the precision of the score network in which the item was computed, if it is known.
	Used     string
	Finished time.Time
	// Files are the artifacts of the item that the report may read.
	Files []string
	// Truth and Restored are 64 bits of the digests of these pictures, 0 if the result has no digest.
	Truth, Restored uint64
	// Measurement is a digest of the restored measurement, Target one of the measurement and its image's name, of 16
	// bytes each: methods are compared on equal measurements. Without a digest of the image both are the target.
	Measurement, Target string
	// Image is 64 bits of the image's digest, or of the stored measurement's.
	Image uint64
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
	c, err := CellOf(it)
	if err != nil {
		return nil, err
	}
	e := &entry{
		Problem: c.Problem, Approach: c.Approach,
		ID: it.ID, Name: it.Name, Preset: it.Preset, Noise: it.Sigma, Run: it.Run, Index: it.Index,
		Seed: it.Seed, Width: it.Width, Height: it.Height, Fit: string(it.Fit),
		Outcome: r.Outcome, Reason: r.Reason, Warnings: manifest.WarningCodes(r.Warnings), Scores: scoresOf(r), Steps: r.Steps, Cost: r.Cost, Evaluations: r.Evaluations(), Provider: r.Runtime.Provider, Used: string(r.Runtime.Used()), Finished: r.Finished,
		Image: imageOf(it),
		Truth: pictureDigest(r, manifest.FileTruth), Restored: pictureDigest(r, manifest.FileRestored),
	}
	e.NoiseVariance = figure(r.Metrics.NoiseVariance)
	for _, file := range []string{manifest.FileTruth, manifest.FileMeasurement, manifest.FileRestored, manifest.FileTrace} {
		if _, ok := r.Artifacts[file]; ok {
			e.Files = append(e.Files, file)
		}
	}
	e.Measurement, e.Target = string(measurement[:16]), shortDigest(it.Name, string(measurement[:]))
	if !identified(it) {
		e.Measurement = e.Target
	}
	return e, nil
}

// pictureDigest returns the first 64 bits of a file's digest.
func pictureDigest(r *manifest.Result, file string) uint64 {
	k, ok := parseIdentity(r.Artifacts[file])
	if !ok {
		return 0
	}
	return binary.BigEndian.Uint64(k[:])
}

// sizeOf is the size in a [Problem].
func sizeOf(it *manifest.Item) string {
	switch {
	case it.Width == 0:
		return ""
	case it.Fit == manifest.FitPad:
		return string(manifest.FitPad)
	}
	return strings.TrimSpace(pixels(it.Width, it.Height) + " " + string(it.Fit))
}

func pixels(width, height int) string { return strconv.Itoa(width) + "x" + strconv.Itoa(height) }

// imageOf identifies the image of an item by the bytes of its file, because two rows may name one image. Without a
// truth the stored measurement takes its place.
func imageOf(it *manifest.Item) uint64 {
	key := "name " + it.Name
	switch {
	case it.Image != nil && it.Image.SHA256 != "":
		key = it.Image.SHA256
	case it.Measurement != nil && it.Measurement.SHA256 != "":
		key = it.Measurement.SHA256
	}
	return imageKey(key)
}

// identified reports whether the bytes of the item's image or stored measurement are known. They are not for a file that
// cannot be read.
func identified(it *manifest.Item) bool {
	return it.Image != nil && it.Image.SHA256 != "" || it.Measurement != nil && it.Measurement.SHA256 != ""
}

// imageKey is [entry.Image] of a digest.
func imageKey(sha256 string) uint64 { return binary.LittleEndian.Uint64([]byte(shortDigest(sha256))) }

func shortDigest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return string(h.Sum(nil)[:16])
}

func (e *entry) group() Cell { return Cell{e.Problem, e.Approach} }

func (e *entry) done() bool { return e.Outcome == manifest.OutcomeDone }

// has reports whether the result lists the file as written.
func (e *entry) has(file string) bool { return slices.Contains(e.Files, file) }

// compareEntries is the order of every output: problem, approach, image name in natural order, run. The other fields
// only separate rows that are equal in these.
func compareEntries(a, b *entry) int {
	return cmp.Or(
		cmp.Compare(a.TaskRank, b.TaskRank),
		a.Problem.compare(b.Problem),
		a.Approach.compare(b.Approach),
		compareNatural(a.Name, b.Name),
		cmp.Compare(a.Run, b.Run),
		cmp.Compare(a.Seed, b.Seed),
		cmp.Compare(a.Index, b.Index),
		strings.Compare(a.ID, b.ID),
	)
}
