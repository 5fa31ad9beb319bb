// Package listing has the items of one campaign in memory, and filters, sorts and pages them.
//
// A row takes some 150 bytes and its name, and 32 after its result. The package reads nothing: its user enters items, states and results.
package listing

import (
	"encoding/hex"
	"math"
	"slices"
	"sync"
	"time"
	"unique"

	"ddiff/api"
	"ddiff/internal/restore/metric"
	"ddiff/restore/item"
)

// metrics are the columns of a row, in the order of row.values.
func metrics() []string {
	names := metric.Builtin().Names()
	for _, m := range metric.Builtin() {
		if m.Degraded {
			names = append(names, metric.Degraded(m.Name))
		}
	}
	return names
}

// text is a string that rows share.
type text = unique.Handle[string]

// row is one item.
type row struct {
	id                                 [32]byte
	name, task, method, worker, reason text
	state                              api.State
	next                               int32 // another row with the same id, -1 without one
	run                                int32
	read                               bool // the result was read, or cannot be
	seconds                            float32
	finished                           uint32    // seconds since 1970, 0 if unknown
	values                             []float32 // of the metrics, NaN without a value; nil before the result
	warnings                           []string  // codes
}

// Table has the items of a campaign in the order of the manifest. Its methods may be called concurrently.
type Table struct {
	mu    sync.RWMutex
	rows  []row
	first map[item.Identity]int32 // by the first half of the id
	done  int
	reads int

	metrics []string
}

// New returns an empty table.
func New() *Table { return &Table{first: map[item.Identity]int32{}, metrics: metrics()} }

// Len returns the number of rows.
func (t *Table) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.rows)
}

// Add adds the next items of the manifest. An item with the id of an earlier one has its state.
func (t *Table) Add(items []item.Item) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = slices.Grow(t.rows, len(items))
	for i := range items {
		it := &items[i]
		r := row{
			name: unique.Make(it.Name), task: unique.Make(it.Task), method: unique.Make(it.Method), worker: unique.Make(""), reason: unique.Make(""), state: api.StatePending, run: int32(it.Run), next: -1,
		}
		_, _ = hex.Decode(r.id[:], []byte(it.ID)[:min(len(it.ID), 2*len(r.id))]) // an id in a window is hexadecimal
		k := item.Identity(r.id[:16])
		at := int32(len(t.rows))
		if same, ok := t.first[k]; ok {
			name := r.name
			r = t.rows[same]
			r.name, r.next = name, same
			t.count(&r, 1)
		}
		t.first[k] = at
		t.rows = append(t.rows, r)
	}
}

// each calls f with the rows of an id.
func (t *Table) each(id string, f func(r *row)) {
	k, ok := item.ParseIdentity(id)
	at, known := t.first[k]
	for ; ok && known && at >= 0; at = t.rows[at].next {
		f(&t.rows[at])
	}
}

// SetState sets the state of an item and its reason. It ignores an unknown item.
func (t *Table) SetState(id string, s api.State, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.each(id, func(r *row) {
		t.count(r, -1)
		if r.state, r.reason = s, unique.Make(reason); s != api.StateDone {
			r.read = false
		}
		t.count(r, 1)
	})
}

// Refresh sets the state of every item.
func (t *Table) Refresh(state func(id string) (api.State, string)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.rows {
		r := &t.rows[i]
		s, reason := state(hex.EncodeToString(r.id[:]))
		if s != r.state {
			t.count(r, -1)
			r.state, r.read = s, false
			t.count(r, 1)
		}
		if reason != r.reason.Value() { // also of an item that has failed again
			r.reason = unique.Make(reason)
		}
	}
}

func (t *Table) count(r *row, n int) {
	if r.state == api.StateDone {
		t.done += n
		if r.read {
			t.reads += n
		}
	}
}

// SetResult enters the result of a done item.
func (t *Table) SetResult(res *item.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var warnings []string
	for _, w := range res.Warnings {
		if code := unique.Make(w.Code).Value(); !slices.Contains(warnings, code) {
			warnings = append(warnings, code)
		}
	}
	var values []float32
	for _, name := range t.metrics {
		values = append(values, float32(res.Metrics.Of(name)))
	}
	finished := uint32(0)
	if at := res.Finished.Unix(); at > 0 && at <= math.MaxUint32 {
		finished = uint32(at)
	}
	t.each(res.Item.ID, func(r *row) {
		t.count(r, -1)
		r.state, r.read, r.reason, r.worker, r.warnings = api.StateDone, true, unique.Make(""), unique.Make(res.Worker), warnings
		r.seconds, r.finished, r.values = float32(res.Seconds), finished, values
		t.count(r, 1)
	})
}

// SetUnreadable notes that a done item has no result that can be read. Its row keeps no values.
func (t *Table) SetUnreadable(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.each(id, func(r *row) {
		t.count(r, -1)
		r.read = true
		t.count(r, 1)
	})
}

// Unread returns up to n ids of done items whose results were not entered, at positions from on, and the position after them.
func (t *Table) Unread(from, n int) (ids []string, next int) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.done == t.reads {
		return nil, len(t.rows)
	}
	for next = from; next < len(t.rows) && len(ids) < n; next++ {
		if r := &t.rows[next]; r.state == api.StateDone && !r.read {
			ids = append(ids, hex.EncodeToString(r.id[:]))
		}
	}
	return ids, next
}

// maxIntervals is the number of intervals of a throughput, shortest the least length of one in seconds.
const maxIntervals, shortest = 240, 5

// Throughput counts the results that were read over the time from the first to the last.
func (t *Table) Throughput() api.Throughput {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := api.Throughput{Seconds: shortest, Items: []int{}, Read: t.reads, Done: t.done}
	first, last := uint32(math.MaxUint32), uint32(0)
	counted := func(r *row) bool { return r.read && r.finished > 0 && r.state == api.StateDone }
	for i := range t.rows {
		if r := &t.rows[i]; counted(r) {
			first, last = min(first, r.finished), max(last, r.finished)
		}
	}
	if last == 0 {
		return out
	}
	for int(last-first)/out.Seconds >= maxIntervals {
		out.Seconds *= 2
	}
	begin := int(first) / out.Seconds
	out.From, out.Items = time.Unix(int64(begin*out.Seconds), 0).UTC(), make([]int, int(last)/out.Seconds-begin+1)
	for i := range t.rows {
		if r := &t.rows[i]; counted(r) {
			out.Items[int(r.finished)/out.Seconds-begin]++
		}
	}
	return out
}

// Find returns the position of an item with an id.
func (t *Table) Find(id string) (index int, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	k, err := hex.DecodeString(id)
	if err != nil || len(k) != 32 {
		return 0, false
	}
	at, ok := t.first[item.Identity(k[:16])]
	for ok && t.rows[at].next >= 0 {
		at = t.rows[at].next
	}
	return int(at), ok
}

func (t *Table) item(index int) api.Item {
	r := &t.rows[index]
	out := api.Item{
		ID: hex.EncodeToString(r.id[:]), Index: index, Name: r.name.Value(), Task: r.task.Value(), Method: r.method.Value(), Run: int(r.run),
		State: r.state, Reason: r.reason.Value(), Worker: r.worker.Value(), Seconds: r.seconds, Warnings: r.warnings,
	}
	for c, v := range r.values {
		if !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) {
			if out.Metrics == nil {
				out.Metrics = map[string]float32{}
			}
			out.Metrics[t.metrics[c]] = v
		}
	}
	return out
}

// Item returns the row at a position.
func (t *Table) Item(index int) api.Item {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.item(index)
}
