// Package entry brings results into the order of reports: [Collect] sorts them, chooses one version of each metric, and groups them by row
// of the table and by measurement. A field of a result that a table or a figure needs is a field of [Entry].
package entry

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"ddiff/internal/report/sweep"
	"ddiff/restore/item"
)

// EstimatedText is "true" for an item whose noise level was estimated.
func (e *Entry) EstimatedText() string {
	if e.Sigma == item.SigmaAuto {
		return "true"
	}
	return ""
}

// ItemFiles are the files of an item that reports read.
var ItemFiles = [...]string{item.FileTruth, item.FileMeasurement, item.FileRestored, item.FileTrace}

// How is what many items share beside their cell.
type How struct {
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Fit    string `json:"fit"`
	Steps  int    `json:"steps"`
	// Cost is known for results of this version.
	Cost     item.Cost `json:"cost,omitzero"`
	Provider string    `json:"provider"`
	// Seed is a string in JSON, because a script's numbers have 53 bits.
	Seed uint64 `json:"seed,string"`
	// Used is the precision of the score network in which the item was computed, if it is known.
	Used string `json:"precision,omitempty"`
	// Form is that of the score network; empty: as exported.
	Form   string `json:"form,omitempty"`
	Preset string `json:"preset"`
	// Tile is the side of the tiles, 0 without; Tiles has them as settings.
	Tile  int    `json:"-"`
	Tiles string `json:"-"`
	// Given has the digests of mask and kernel as parameters.
	Given string `json:"-"`
	// Evaluations counts those of the network.
	Evaluations int `json:"-"`
	// TaskRank is the position of the task in the order of tables.
	TaskRank int `json:"-"`
}

// Entry is the part of a result that the report uses, or of the runs of a measurement that [Combine] combined: some 500 bytes.
type Entry struct {
	// Cell and How are common to many entries.
	*sweep.Cell
	*How
	ID, Name   string
	Run, Index int
	// Noise is the noise level of the measurement, also where Sigma is auto.
	Noise   float64
	Outcome item.Outcome
	Reason  string
	// Warnings has the codes of the result's warnings.
	Warnings string
	Figures
	scores   []score // until a version of each metric is chosen
	Finished time.Time
	// Files has a bit for each of [ItemFiles] that the result lists.
	Files uint8
	// Truth and Restored are 64 bits of the digests of these pictures, 0 if the result has no digest.
	Truth, Restored uint64
	// Measurement is a digest of the restored measurement, Target one of the measurement and its image's name: methods are
	// compared on equal measurements. Without a digest of the image both are the target.
	Measurement, Target [16]byte
	// Image is 64 bits of the image's digest, or of the stored measurement's.
	Image uint64
}

// score is a score with the id of its version, or with the name of the metric if the result states no version.
type score struct {
	id    string
	value float64
}

// shared has one pointer for equal values.
type shared[T comparable] map[T]*T

func (s shared[T]) of(v T) *T {
	if s[v] == nil {
		s[v] = &v
	}
	return s[v]
}

// newEntry returns an error when the outcome is unknown or the item has no identity.
func (s *Set) newEntry(r *item.Result, rank int) (*Entry, error) {
	it := &r.Item
	switch r.Outcome {
	case item.OutcomeDone, item.OutcomeFailed, item.OutcomeDead:
	default:
		return nil, fmt.Errorf("read item %q: outcome %q is none of done, failed, dead", it.Name, r.Outcome)
	}
	measurement, err := it.MeasurementKey()
	if err != nil {
		return nil, fmt.Errorf("identify measurement of item %q: %w", it.Name, err)
	}
	c, err := sweep.CellOf(it)
	if err != nil {
		return nil, err
	}
	e := &Entry{
		Cell: s.cells.of(c),
		How: s.hows.of(How{
			Width: it.Width, Height: it.Height, Fit: string(it.Fit), Steps: r.Steps, Cost: r.Cost, Provider: r.Runtime.Provider, Seed: it.Seed, Used: string(r.Runtime.Precision),
			Form: r.Runtime.Form, Preset: it.Preset, Tile: it.Tile, Tiles: sweep.Tiles(it), Given: sweep.Files(it), Evaluations: r.Evaluations(), TaskRank: rank,
		}),
		ID: it.ID, Name: it.Name, Noise: it.Sigma, Run: it.Run, Index: it.Index,
		Outcome: r.Outcome, Reason: r.Reason, Warnings: item.WarningCodes(r.Warnings), Finished: r.Finished,
		Image: ImageKey(cmp.Or(imageDigest(it), "name "+it.Name)),
		Truth: pictureDigest(r, item.FileTruth), Restored: pictureDigest(r, item.FileRestored),
	}
	for bit, file := range ItemFiles {
		if _, ok := r.Artifacts[file]; ok {
			e.Files |= 1 << bit
		}
	}
	e.Measurement, e.Target = [16]byte(measurement[:16]), shortDigest(it.Name, string(measurement[:]))
	if imageDigest(it) == "" {
		e.Measurement = e.Target
	}
	return e, nil
}

// pictureDigest returns the first 64 bits of a file's digest.
func pictureDigest(r *item.Result, file string) uint64 {
	k, ok := item.ParseIdentity(r.Artifacts[file])
	if !ok {
		return 0
	}
	return binary.BigEndian.Uint64(k[:])
}

// imageDigest identifies the image of an item by the bytes of its file, because two rows may name one image. Without a truth the stored
// measurement takes its place. It is empty for a file that cannot be read.
func imageDigest(it *item.Item) string {
	for _, source := range []*item.Source{it.Image, it.Measurement} {
		if source != nil && source.SHA256 != "" {
			return source.SHA256
		}
	}
	return ""
}

// ImageKey is [entry.Image] of a digest.
func ImageKey(sha256 string) uint64 {
	digest := shortDigest(sha256)
	return binary.LittleEndian.Uint64(digest[:])
}

func shortDigest(parts ...string) [16]byte {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return [16]byte(h.Sum(nil)[:16])
}

// Done reports whether the item was restored.
func (e *Entry) Done() bool { return e.Outcome == item.OutcomeDone }

// Has reports whether the result lists the file as written.
func (e *Entry) Has(file string) bool { return e.Files&(1<<slices.Index(ItemFiles[:], file)) != 0 }

// CompareEntries is the order of every output: problem, approach, image name in natural order, run. The other fields
// only separate rows that are equal in these.
func CompareEntries(a, b *Entry) int {
	if a.Cell != b.Cell {
		if order := cmp.Or(cmp.Compare(a.TaskRank, b.TaskRank), a.Problem.Compare(b.Problem), a.Approach.Compare(b.Approach)); order != 0 {
			return order
		}
	}
	return cmp.Or(
		sweep.CompareNatural(a.Name, b.Name),
		cmp.Compare(a.Run, b.Run),
		cmp.Compare(a.Seed, b.Seed),
		cmp.Compare(a.Index, b.Index),
		strings.Compare(a.ID, b.ID),
	)
}
