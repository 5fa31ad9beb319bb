package index

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"ddiff/internal/record"
	"ddiff/storage"
)

// Prefix is the folder of the index of campaigns. An entry is an empty object whose key has all its fields:
//
//	campaigns/.index/ID.NUMBER.STATE.OUTPUT[.ROW]
//	campaigns/.index/ID.NUMBER.deleting.OUTPUT[.results]
//
// A key campaigns/.index/.output.OUTPUT.ID marks a deletion with results, and
// campaigns/.index/ID.deleted.TIME remembers a deleted submission, and has its owner, see [Index.Bury].
//
// One listing therefore returns a thousand campaigns per request without reading any object. Entries are only added; the
// entry with the highest number counts. Archiving needs no permission to delete.
const Prefix = record.IndexFolder

// State is the whereabouts of a campaign.
type State string

// The states of a campaign in the index.
const (
	Open     State = "open"     // on the board
	Archived State = "archived" // in the archive; the entry has a row
	Deleting State = "deleting" // its data are being deleted
)

// Entry is one entry of the index.
type Entry struct {
	ID     string
	Number int
	State  State
	Output string // digest of the output, see OutputDigest
	Row    Row
	// Results: the deletion includes the results.
	Results bool
}

// Row is the line of an archived campaign in a list.
type Row struct {
	Phase     record.Phase
	Priority  record.Priority
	Weight    int
	Counts    record.Counts
	Submitted time.Time
	Finished  time.Time
	Archived  time.Time
	// Seconds and Cost are those of the status, in steps of a second and a thousandth.
	Seconds float64
	Cost    float64
}

// OutputDigest shortens an output to a token. Two outputs may share it.
func OutputDigest(output string) string {
	sum := sha256.Sum256([]byte(strings.TrimSuffix(output, "/")))
	return hex.EncodeToString(sum[:6])
}

// rounding keeps a cost that was read from a key as it is.
const rounding = 1e-6

// Key returns the entry's key.
func (e Entry) Key() string {
	key := fmt.Sprintf("%s%s.%06d.%s.%s", Prefix, e.ID, e.Number, e.State, e.Output)
	if e.Results {
		return key + ".results"
	}
	if e.State != Archived {
		return key
	}
	n := e.Row.Counts
	return fmt.Sprintf("%s.%s.%s.%d.%d.%d.%d.%d.%d.%d.%d.%d.%.0f.%.0f", key, e.Row.Phase, e.Row.Priority, e.Row.Weight,
		n.Items, n.Done, n.Failed, n.Dead, n.Cancelled, e.Row.Submitted.Unix(), e.Row.Finished.Unix(), e.Row.Archived.Unix(),
		math.Ceil(e.Row.Seconds), math.Ceil(1000*e.Row.Cost-rounding))
}

// ParseKey reads an entry from its key. It returns false for other keys, such as those of later versions.
func ParseKey(key string) (Entry, bool) {
	name, ok := strings.CutPrefix(key, Prefix)
	parts := strings.Split(name, ".")
	if !ok || len(parts) < 4 || parts[0] == "" {
		return Entry{}, false
	}
	number, err := strconv.Atoi(parts[1])
	e := Entry{ID: parts[0], Number: number, State: State(parts[2]), Output: parts[3]}
	switch {
	case err != nil || number < 0:
		return Entry{}, false
	case e.State == Open:
		return e, true
	case e.State == Deleting:
		e.Results = len(parts) == 5 && parts[4] == "results"
		return e, true
	case e.State != Archived || len(parts) < 17:
		return Entry{}, false
	}
	e.Row.Phase, e.Row.Priority = record.Phase(parts[4]), record.Priority(parts[5])
	var numbers [9]int64
	for i := range numbers {
		if numbers[i], err = strconv.ParseInt(parts[6+i], 10, 64); err != nil {
			return Entry{}, false
		}
	}
	var amounts [2]float64 // a cost may exceed an integer
	for i := range amounts {
		if amounts[i], err = strconv.ParseFloat(parts[15+i], 64); err != nil {
			return Entry{}, false
		}
	}
	instant := func(i int) time.Time { return time.Unix(numbers[i], 0).UTC() }
	e.Row.Weight = int(numbers[0])
	e.Row.Counts = record.Counts{
		Items: int(numbers[1]), Done: int(numbers[2]), Failed: int(numbers[3]), Dead: int(numbers[4]), Cancelled: int(numbers[5]),
		Pending: int(max(0, numbers[1]-numbers[2]-numbers[3]-numbers[4]-numbers[5])), // of a rejected campaign
	}
	e.Row.Submitted, e.Row.Finished, e.Row.Archived = instant(6), instant(7), instant(8)
	e.Row.Seconds, e.Row.Cost = amounts[0], amounts[1]/1000
	return e, true
}

// supersedes orders the entries of one campaign. Two leaders, or a leader and a deletion, may have written the same
// number: then the state that permits less counts.
func (e Entry) supersedes(other Entry) bool {
	rank := func(s State) int { return slices.Index([]State{Archived, Open, Deleting}, s) }
	if e.Number != other.Number {
		return e.Number > other.Number
	}
	return rank(e.State) > rank(other.State)
}

// ErrDeleting: the data of the campaign are being deleted.
var ErrDeleting = errors.New("the campaign is being deleted; complete it with: ddiff delete")

// Bury remembers that a submission was deleted, and its owner, before its data are: a board that is restored from a backup may have its record.
func (x Index) Bury(ctx context.Context, c *record.Campaign) error {
	if err := x.store.Put(ctx, c.Tombstone(), []byte(c.Owner)); err != nil {
		return fmt.Errorf("remember the deletion of campaign %s: %w", c.ID, err)
	}
	return nil
}

// Buried reports whether a submission was deleted. Another submission with the same id is another one.
func (x Index) Buried(ctx context.Context, c *record.Campaign) (bool, error) {
	_, err := x.store.Stat(ctx, c.Tombstone())
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// DeletingOwner returns the owner of a campaign whose deletion has lost its record and is not complete, or storage.ErrNotFound.
func (x Index) DeletingOwner(ctx context.Context, id string) (string, error) {
	newest, err := x.Newest(ctx, id)
	if err != nil || newest.State != Deleting {
		return "", cmp.Or(err, storage.ErrNotFound)
	}
	last := ""
	for info, err := range x.store.List(ctx, Prefix+id+tombstones) {
		if err != nil {
			return "", fmt.Errorf("list the deletions of campaign %s: %w", id, err)
		}
		last = info.Key
	}
	if last == "" {
		return "", storage.ErrNotFound
	}
	owner, err := x.store.Get(ctx, last)
	return string(owner), err
}

// tombstones is in the keys of deleted submissions, which are no entries.
const tombstones = ".deleted."

// IsTombstone reports whether a key is a [record.Campaign.Tombstone].
func IsTombstone(key string) bool {
	return strings.HasPrefix(key, Prefix) && strings.Contains(key, tombstones)
}

// KeyComplete marks the store of a cluster: its campaigns are all in the index.
const KeyComplete = Prefix + "complete"

// Index is the part of a store that has the index.
type Index struct{ store storage.Store }

// New returns the index of a store.
func New(store storage.Store) Index { return Index{store} }

// Newest returns the newest entry of a campaign, with the state "" and the number -1 if there is none.
func (x Index) Newest(ctx context.Context, id string) (Entry, error) {
	newest, err := x.newest(ctx, id)
	if e, ok := newest[id]; ok {
		return e, err
	}
	return Entry{ID: id, Number: -1}, err
}

// All returns the newest entry of each campaign.
func (x Index) All(ctx context.Context) (map[string]Entry, error) { return x.newest(ctx, "") }

// newest returns the newest entry of a campaign, or of all campaigns for the id "".
func (x Index) newest(ctx context.Context, id string) (map[string]Entry, error) {
	newest := map[string]Entry{}
	for e, err := range x.Entries(ctx, id) {
		if err != nil {
			return nil, err
		}
		if old, ok := newest[e.ID]; !ok || e.supersedes(old) {
			newest[e.ID] = e
		}
	}
	return newest, nil
}

// Entries yields the entries of a campaign, or of all campaigns for the id "". It skips unknown keys.
func (x Index) Entries(ctx context.Context, id string) func(yield func(Entry, error) bool) {
	prefix := Prefix
	if id != "" {
		prefix += id + "."
	}
	return func(yield func(Entry, error) bool) {
		for info, err := range x.store.List(ctx, prefix) {
			if err != nil {
				yield(Entry{}, fmt.Errorf("list the index of campaigns: %w", err))
				return
			}
			if e, ok := ParseKey(info.Key); ok && !yield(e, nil) {
				return
			}
		}
	}
}

// MarkKey is the key of a mark that the results of a campaign in an output are being deleted: with it, DeletingResults looks at the
// deletions of one output only.
func (e Entry) MarkKey() string { return markPrefix(e.Output) + e.ID }

// markPrefix begins the keys of the marks of an output, given its digest.
func markPrefix(output string) string { return Prefix + ".output." + output + "." }

// DeletingResults returns a campaign whose results in an output are being deleted, or "".
func (x Index) DeletingResults(ctx context.Context, output string) (id string, err error) {
	prefix := markPrefix(OutputDigest(output))
	for info, err := range x.store.List(ctx, prefix) {
		if err != nil {
			return "", fmt.Errorf("list the deletions in output %s: %w", output, err)
		}
		e, err := x.Newest(ctx, strings.TrimPrefix(info.Key, prefix))
		if err != nil || e.State == Deleting && e.Results {
			return e.ID, err
		}
	}
	return "", nil
}

// Add stores an entry. It is idempotent. A deletion of results gets its mark first.
func (x Index) Add(ctx context.Context, e Entry) error {
	if e.State == Deleting && e.Results {
		if err := x.store.Put(ctx, e.MarkKey(), nil); err != nil {
			return fmt.Errorf("mark the deletion of campaign %s: %w", e.ID, err)
		}
	}
	if err := x.store.Put(ctx, e.Key(), nil); err != nil {
		return fmt.Errorf("enter campaign %s into the index: %w", e.ID, err)
	}
	return nil
}

// Open enters a campaign as open unless its newest entry says so. It fails with ErrDeleting while its data are deleted.
//
// A deletion writes its entry and then looks for open entries; open does the same in reverse. At least one of two
// concurrent calls therefore sees the other.
func (x Index) Open(ctx context.Context, c *record.Campaign) error {
	newest, err := x.Newest(ctx, c.ID)
	if err != nil {
		return err
	}
	switch newest.State {
	case Deleting:
		return ErrDeleting
	case Open:
		return nil
	}
	err = x.Add(ctx, Entry{ID: c.ID, Number: newest.Number + 1, State: Open, Output: OutputDigest(c.Output)})
	if err != nil {
		return err
	}
	if newest, err = x.Newest(ctx, c.ID); err == nil && newest.State == Deleting {
		err = ErrDeleting
	}
	return err
}
