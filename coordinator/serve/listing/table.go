package listing

import (
	"encoding/hex"
	"math"
	"slices"
	"sync"
	"time"

	"ddiff/api"
	"ddiff/manifest"
)

// metrics are the columns of a row, in the order of row.values.
func metrics() []string {
	return []string{"psnr", "ssim", "psnr_y", "haarpsi", "residual", "baseline_psnr", "baseline_ssim"}
}

// columns is the number of metrics.
const columns = 7

// row is one item. Texts are indices of Table.words.
type row struct {
	id                           [32]byte
	name                         string
	task, method, worker, reason uint32
	next                         int32 // another row with the same id, -1 without one
	run                          uint16
	warnings                     uint16 // a bit for each code
	state                        uint8
	read                         bool // the result was read, or cannot be
	seconds                      float32
	finished                     uint32           // seconds since 1970, 0 if unknown
	values                       [columns]float32 // NaN without a value
}

// states are those of row.state.
func states() []api.State {
	return []api.State{api.StatePending, api.StateDone, api.StateFailed, api.StateDead}
}

// maxCodes is the number of codes of warnings that a table knows.
const maxCodes = 16

// Table has the items of a campaign in the order of the manifest. Its methods may be called concurrently.
type Table struct {
	mu    sync.RWMutex
	rows  []row
	first map[[16]byte]int32 // by the first half of the id
	words []string
	word  map[string]uint32
	names map[string]string // recent names, which rows share
	codes []string
	done  int
	reads int
}

// New returns an empty table.
func New() *Table {
	return &Table{first: map[[16]byte]int32{}, words: []string{""}, word: map[string]uint32{"": 0}, names: map[string]string{}}
}

// Len returns the number of rows.
func (t *Table) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.rows)
}

// maxNames is the number of names that are kept to be shared: rows of one image follow one another.
const maxNames = 8192

// Add adds the next items of the manifest. An item with the id of an earlier one has its state.
func (t *Table) Add(items []manifest.Item) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = slices.Grow(t.rows, len(items))
	for i := range items {
		it := &items[i]
		r := row{
			task: t.intern(it.Task), method: t.intern(it.Method), run: uint16(min(max(it.Run, 0), math.MaxUint16)), next: -1,
		}
		_, _ = hex.Decode(r.id[:], []byte(it.ID)[:min(len(it.ID), 2*len(r.id))]) // an id in a window is hexadecimal
		if len(t.names) > maxNames {
			clear(t.names)
		}
		name, ok := t.names[it.Name]
		if !ok {
			name = it.Name
			t.names[name] = name
		}
		r.name = name
		for c := range r.values {
			r.values[c] = float32(math.NaN())
		}
		k := [16]byte(r.id[:16])
		at := int32(len(t.rows))
		if same, ok := t.first[k]; ok {
			r = t.rows[same]
			r.name, r.next = name, same
			if states()[r.state] == api.StateDone {
				t.done++
			}
			if r.read {
				t.reads++
			}
		}
		t.first[k] = at
		t.rows = append(t.rows, r)
	}
}

func (t *Table) intern(text string) uint32 {
	if i, ok := t.word[text]; ok {
		return i
	}
	i := uint32(len(t.words))
	t.words = append(t.words, text)
	t.word[text] = i
	return i
}

// each calls f with the rows of an id.
func (t *Table) each(id string, f func(r *row)) {
	var k [16]byte
	if len(id) < 2*len(k) {
		return
	}
	if _, err := hex.Decode(k[:], []byte(id[:2*len(k)])); err != nil {
		return
	}
	at, ok := t.first[k]
	for ; ok && at >= 0; at = t.rows[at].next {
		f(&t.rows[at])
	}
}

// SetState sets the state of an item and its reason. It ignores an unknown item.
func (t *Table) SetState(id string, s api.State, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	state, why := uint8(max(0, slices.Index(states(), s))), t.intern(reason)
	t.each(id, func(r *row) {
		t.count(r, -1)
		if r.state, r.reason = state, why; s != api.StateDone {
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
		if next := uint8(max(0, slices.Index(states(), s))); next != r.state {
			t.count(r, -1)
			r.state, r.read, r.reason = next, false, t.intern(reason)
			t.count(r, 1)
		}
	}
}

// count adds a row to the counts, or removes it.
func (t *Table) count(r *row, n int) {
	if states()[r.state] == api.StateDone {
		t.done += n
		if r.read {
			t.reads += n
		}
	}
}

// SetResult enters the result of a done item.
func (t *Table) SetResult(res *manifest.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var warnings uint16
	for _, w := range res.Warnings {
		i := slices.Index(t.codes, w.Code)
		if i < 0 && len(t.codes) < maxCodes {
			i = len(t.codes)
			t.codes = append(t.codes, w.Code)
		}
		if i >= 0 {
			warnings |= 1 << i
		}
	}
	worker, m, finished := t.intern(res.Worker), &res.Metrics, uint32(0)
	if at := res.Finished.Unix(); at > 0 && at <= math.MaxUint32 {
		finished = uint32(at)
	}
	t.each(res.Item.ID, func(r *row) {
		t.count(r, -1)
		r.state, r.read, r.reason, r.worker, r.warnings = uint8(slices.Index(states(), api.StateDone)), true, 0, worker, warnings
		r.seconds, r.finished = float32(res.Seconds), finished
		for c, v := range []*float64{m.PSNR, m.SSIM, m.PSNRLuma, m.HaarPSI, m.Residual, m.BaselinePSNR, m.BaselineSSIM} {
			if r.values[c] = float32(math.NaN()); v != nil {
				r.values[c] = float32(*v)
			}
		}
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
	done := uint8(slices.Index(states(), api.StateDone))
	for next = from; next < len(t.rows) && len(ids) < n; next++ {
		if r := &t.rows[next]; r.state == done && !r.read {
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
	counted := func(r *row) bool { return r.read && r.finished > 0 && states()[r.state] == api.StateDone }
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
	at, ok := t.first[[16]byte(k[:16])]
	for ok && t.rows[at].next >= 0 {
		at = t.rows[at].next
	}
	return int(at), ok
}

// item returns a row as a value of the API.
func (t *Table) item(index int) api.Item {
	r := &t.rows[index]
	out := api.Item{
		ID: hex.EncodeToString(r.id[:]), Index: index, Name: r.name, Task: t.words[r.task], Method: t.words[r.method], Run: int(r.run),
		State: states()[r.state], Reason: t.words[r.reason], Worker: t.words[r.worker], Seconds: r.seconds,
	}
	for c, name := range metrics() {
		if v := r.values[c]; !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) {
			if out.Metrics == nil {
				out.Metrics = map[string]float32{}
			}
			out.Metrics[name] = v
		}
	}
	for i, code := range t.codes {
		if r.warnings&(1<<i) != 0 {
			out.Warnings = append(out.Warnings, code)
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
