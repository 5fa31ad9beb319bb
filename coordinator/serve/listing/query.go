package listing

import (
	"cmp"
	"container/heap"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"ddiff/api"
)

// key is what an order sorts by, and what a cursor holds.
type key struct {
	// Order is the order of the cursor's list.
	Order string `json:"o"`
	// Value is the value of the column; Missing means that there is none.
	Value   float64 `json:"v"`
	Missing bool    `json:"m,omitempty"`
	Text    string  `json:"t,omitempty"`
	Index   int     `json:"i"`
}

// order compares rows.
type order struct {
	text   string // as in the query
	down   bool
	column int // of the metrics; or one of the constants below
}

const (
	byIndex = -1 - iota
	byName
	bySeconds
)

func parseOrder(text string) (order, error) {
	name, down := strings.CutPrefix(text, "-")
	o := order{text: text, down: down, column: slices.Index(metrics(), name)}
	switch name {
	case "", "index":
		o.column = byIndex
	case "name":
		o.column = byName
	case "seconds":
		o.column = bySeconds
	default:
		if o.column < 0 {
			return o, api.NewError(api.ErrInvalid, fmt.Sprintf("sort: %q is none of index, name, seconds, %s", name, strings.Join(metrics(), ", ")))
		}
	}
	return o, nil
}

func (o order) key(r *row, index int) key {
	k := key{Order: o.text, Index: index}
	switch o.column {
	case byIndex:
	case byName:
		k.Text = r.name
	case bySeconds:
		k.Value, k.Missing = float64(r.seconds), !r.read
	default:
		v := r.values[o.column]
		if k.Missing = math.IsNaN(float64(v)); !k.Missing {
			k.Value = min(max(float64(v), -math.MaxFloat64), math.MaxFloat64)
		}
	}
	return k
}

// compare orders two keys. Rows without a value are last in both directions; of equal values, the order is that of the rows, or its reverse.
func (o order) compare(a, b key) int {
	if a.Missing != b.Missing {
		if a.Missing {
			return 1
		}
		return -1
	}
	c := cmp.Or(cmp.Compare(a.Value, b.Value), strings.Compare(a.Text, b.Text), cmp.Compare(a.Index, b.Index))
	if o.down {
		return -c
	}
	return c
}

// behind reports whether a row comes after a key of a row that was scanned before: in the direction of the order, a row with an equal value does. It
// spares the many rows that are not on a page their keys.
func (o order) behind(r *row, k *key) bool {
	var v float64
	var missing bool
	switch o.column {
	case byIndex:
		return true
	case byName:
		return o.down && r.name <= k.Text || !o.down && r.name >= k.Text
	case bySeconds:
		v, missing = float64(r.seconds), !r.read
	default:
		v = float64(r.values[o.column])
		missing = math.IsNaN(v)
	}
	if missing || k.Missing {
		return missing
	}
	return o.down && v <= k.Value || !o.down && v >= k.Value
}

// best keeps the first keys of an order: a heap with the last of them on top.
type best struct {
	order
	keys []key
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (b *best) Len() int           { return len(b.keys) }
func (b *best) Less(i, j int) bool { return b.compare(b.keys[i], b.keys[j]) > 0 }
func (b *best) Swap(i, j int)      { b.keys[i], b.keys[j] = b.keys[j], b.keys[i] }
func (b *best) Push(x any)         { b.keys = append(b.keys, x.(key)) } //nolint:forcetypeassert // the type of the heap
func (b *best) Pop() any {
	k := b.keys[len(b.keys)-1]
	b.keys = b.keys[:len(b.keys)-1]
	return k
}

// Query returns a page. The error wraps api.ErrInvalid for an unknown order or a damaged cursor.
func (t *Table) Query(q api.ItemQuery) (api.Items, error) {
	o, err := parseOrder(q.Sort)
	if err != nil {
		return api.Items{}, err
	}
	var after *key
	if q.Cursor != "" {
		data, err := base64.RawURLEncoding.DecodeString(q.Cursor)
		if err != nil || json.Unmarshal(data, &after) != nil || after == nil || after.Order != o.text {
			return api.Items{}, api.NewError(api.ErrInvalid, "cursor: it is not from a page in this order; begin without a cursor")
		}
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := api.Items{Items: []api.Item{}, Listed: len(t.rows), Read: t.reads, Done: t.done}
	limit := max(1, q.Limit)
	page := &best{order: o}
	matches := t.filter(q)
	for i := range t.rows {
		if o.down { // rows are mostly in the order of their names, and of equal values: the page is complete early in both directions
			i = len(t.rows) - 1 - i
		}
		r := &t.rows[i]
		if !matches(r) {
			continue
		}
		out.Total++
		if len(page.keys) > limit && o.behind(r, &page.keys[0]) {
			continue
		}
		k := o.key(r, i)
		if after != nil && o.compare(k, *after) <= 0 {
			continue
		}
		if len(page.keys) <= limit {
			heap.Push(page, k)
		} else if o.compare(k, page.keys[0]) < 0 {
			page.keys[0] = k
			heap.Fix(page, 0)
		}
	}
	slices.SortFunc(page.keys, o.compare)
	if len(page.keys) > limit {
		page.keys = page.keys[:limit]
		data, err := json.Marshal(page.keys[limit-1])
		if err != nil {
			return out, err
		}
		out.Next = base64.RawURLEncoding.EncodeToString(data)
	}
	for _, k := range page.keys {
		out.Items = append(out.Items, t.item(k.Index))
		if r := &t.rows[k.Index]; !r.read && states()[r.state] == api.StateDone {
			out.Unread = append(out.Unread, out.Items[len(out.Items)-1].ID)
		}
	}
	return out, nil
}

// filter returns the condition of a query.
func (t *Table) filter(q api.ItemQuery) func(r *row) bool {
	var conditions []func(r *row) bool
	if q.State != "" {
		state := slices.Index(states(), q.State)
		conditions = append(conditions, func(r *row) bool { return int(r.state) == state })
	}
	word := func(text string, of func(r *row) uint32) {
		if text == "" {
			return
		}
		w, known := t.word[text]
		conditions = append(conditions, func(r *row) bool { return known && of(r) == w })
	}
	word(q.Task, func(r *row) uint32 { return r.task })
	word(q.Method, func(r *row) uint32 { return r.method })
	word(q.Worker, func(r *row) uint32 { return r.worker })
	if q.Reason != "" {
		conditions = append(conditions, func(r *row) bool { return strings.Contains(t.words[r.reason], q.Reason) })
	}
	if q.Name != "" {
		begin, err := hex.DecodeString(q.Name[:len(q.Name)&^1])
		isID := err == nil && len(q.Name) >= 8
		conditions = append(conditions, func(r *row) bool {
			return strings.Contains(r.name, q.Name) || isID && len(begin) <= len(r.id) && string(r.id[:len(begin)]) == string(begin)
		})
	}
	if q.Warning != "" {
		mask := uint16(math.MaxUint16)
		if q.Warning != "any" {
			mask = 0
			if i := slices.Index(t.codes, q.Warning); i >= 0 {
				mask = 1 << i
			}
		}
		conditions = append(conditions, func(r *row) bool { return r.warnings&mask != 0 })
	}
	return func(r *row) bool {
		for _, holds := range conditions {
			if !holds(r) {
				return false
			}
		}
		return true
	}
}
