package coordinator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ddiff/manifest"
	"ddiff/storage"
)

// indexPrefix is the folder of the index of campaigns. An entry is an empty object whose key has all its fields:
//
//	campaigns/.index/ID.NUMBER.STATE.OUTPUT[.ROW]
//	campaigns/.index/ID.NUMBER.deleting.OUTPUT[.results]
//
// One listing therefore returns a thousand campaigns per request without reading any object. Entries are only added; the
// entry with the highest number counts. Archiving needs no permission to delete.
const indexPrefix = "campaigns/.index/"

// indexState is the whereabouts of a campaign.
type indexState string

const (
	indexOpen     indexState = "open"     // on the board
	indexArchived indexState = "archived" // in the archive; the entry has a row
	indexDeleting indexState = "deleting" // its data are being deleted
)

// indexEntry is one entry of the index.
type indexEntry struct {
	id     string
	number int
	state  indexState
	output string // digest of the output, see outputDigest
	row    archivedRow
	// results: the deletion includes the results.
	results bool
}

// archivedRow is the line of an archived campaign in a list.
type archivedRow struct {
	Phase     manifest.Phase    `json:"phase"`
	Priority  manifest.Priority `json:"priority"`
	Weight    int               `json:"weight"`
	Counts    manifest.Counts   `json:"counts"`
	Submitted time.Time         `json:"submitted"`
	Finished  time.Time         `json:"finished"`
	Archived  time.Time         `json:"archived"`
}

// outputDigest shortens an output to a token. Two outputs may share it.
func outputDigest(output string) string {
	sum := sha256.Sum256([]byte(strings.TrimSuffix(output, "/")))
	return hex.EncodeToString(sum[:6])
}

// key returns the entry's key.
func (e indexEntry) key() string {
	key := fmt.Sprintf("%s%s.%06d.%s.%s", indexPrefix, e.id, e.number, e.state, e.output)
	if e.results {
		return key + ".results"
	}
	if e.state != indexArchived {
		return key
	}
	n := e.row.Counts
	return fmt.Sprintf("%s.%s.%s.%d.%d.%d.%d.%d.%d.%d.%d.%d", key, e.row.Phase, e.row.Priority, e.row.Weight,
		n.Items, n.Done, n.Failed, n.Dead, n.Cancelled, e.row.Submitted.Unix(), e.row.Finished.Unix(), e.row.Archived.Unix())
}

// parseIndexKey reads an entry from its key. It returns false for other keys, such as those of later versions.
func parseIndexKey(key string) (indexEntry, bool) {
	name, ok := strings.CutPrefix(key, indexPrefix)
	parts := strings.Split(name, ".")
	if !ok || len(parts) < 4 || parts[0] == "" {
		return indexEntry{}, false
	}
	number, err := strconv.Atoi(parts[1])
	e := indexEntry{id: parts[0], number: number, state: indexState(parts[2]), output: parts[3]}
	switch {
	case err != nil || number < 0:
		return indexEntry{}, false
	case e.state == indexOpen:
		return e, true
	case e.state == indexDeleting:
		e.results = len(parts) == 5 && parts[4] == "results"
		return e, true
	case e.state != indexArchived || len(parts) < 15:
		return indexEntry{}, false
	}
	e.row.Phase, e.row.Priority = manifest.Phase(parts[4]), manifest.Priority(parts[5])
	var numbers [9]int64
	for i := range numbers {
		if numbers[i], err = strconv.ParseInt(parts[6+i], 10, 64); err != nil {
			return indexEntry{}, false
		}
	}
	instant := func(i int) time.Time { return time.Unix(numbers[i], 0).UTC() }
	e.row.Weight = int(numbers[0])
	e.row.Counts = manifest.Counts{
		Items: int(numbers[1]), Done: int(numbers[2]), Failed: int(numbers[3]), Dead: int(numbers[4]), Cancelled: int(numbers[5]),
		Pending: int(max(0, numbers[1]-numbers[2]-numbers[3]-numbers[4]-numbers[5])), // of a rejected campaign
	}
	e.row.Submitted, e.row.Finished, e.row.Archived = instant(6), instant(7), instant(8)
	return e, true
}

// supersedes orders the entries of one campaign. Two leaders, or a leader and a deletion, may have written the same
// number: then the state that permits less counts.
func (e indexEntry) supersedes(other indexEntry) bool {
	rank := func(s indexState) int { return slices.Index([]indexState{indexArchived, indexOpen, indexDeleting}, s) }
	if e.number != other.number {
		return e.number > other.number
	}
	return rank(e.state) > rank(other.state)
}

// index is the part of a store that has the index.
type index struct{ store storage.Store }

// of returns the newest entry of a campaign, with the state "" if there is none.
func (x index) of(ctx context.Context, id string) (indexEntry, error) {
	newest := indexEntry{id: id, number: -1}
	for e, err := range x.entries(ctx, id) {
		if err != nil {
			return newest, err
		}
		if e.supersedes(newest) {
			newest = e
		}
	}
	return newest, nil
}

// archive returns the number of the newest archive of a campaign, 0 if there is none.
func (x index) archive(ctx context.Context, id string) (number int, err error) {
	for e, err := range x.entries(ctx, id) {
		if err != nil {
			return 0, err
		}
		if e.state == indexArchived {
			number = max(number, e.number)
		}
	}
	return number, nil
}

// all returns the newest entry of each campaign.
func (x index) all(ctx context.Context) (map[string]indexEntry, error) {
	newest := map[string]indexEntry{}
	for e, err := range x.entries(ctx, "") {
		if err != nil {
			return nil, err
		}
		if old, ok := newest[e.id]; !ok || e.supersedes(old) {
			newest[e.id] = e
		}
	}
	return newest, nil
}

// entries yields the entries of a campaign, or of all campaigns for the id "". It skips unknown keys.
func (x index) entries(ctx context.Context, id string) func(yield func(indexEntry, error) bool) {
	prefix := indexPrefix
	if id != "" {
		prefix += id + "."
	}
	return func(yield func(indexEntry, error) bool) {
		for info, err := range x.store.List(ctx, prefix) {
			if err != nil {
				yield(indexEntry{}, fmt.Errorf("list the index of campaigns: %w", err))
				return
			}
			if e, ok := parseIndexKey(info.Key); ok && !yield(e, nil) {
				return
			}
		}
	}
}

// add stores an entry. It is idempotent.
func (x index) add(ctx context.Context, e indexEntry) error {
	if err := x.store.Put(ctx, e.key(), nil); err != nil {
		return fmt.Errorf("enter campaign %s into the index: %w", e.id, err)
	}
	return nil
}

// open enters a campaign as open unless its newest entry says so. It fails with errDeleting while its data are deleted.
//
// A deletion writes its entry and then looks for open entries; open does the same in reverse. At least one of two
// concurrent calls therefore sees the other.
func (x index) open(ctx context.Context, c *manifest.Campaign) error {
	newest, err := x.of(ctx, c.ID)
	if err != nil {
		return err
	}
	switch newest.state {
	case indexDeleting:
		return errDeleting
	case indexOpen:
		return nil
	}
	err = x.add(ctx, indexEntry{id: c.ID, number: newest.number + 1, state: indexOpen, output: outputDigest(c.Output)})
	if err != nil {
		return err
	}
	if newest, err = x.of(ctx, c.ID); err == nil && newest.state == indexDeleting {
		err = errDeleting
	}
	return err
}
