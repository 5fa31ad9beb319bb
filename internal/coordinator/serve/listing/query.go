package listing

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unique"

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
		k.Text = r.name.Value()
	case bySeconds:
		k.Value, k.Missing = float64(r.seconds), !r.read
	default:
		v := math.NaN()
		if r.values != nil {
			v = float64(r.values[o.column])
		}
		if k.Missing = math.IsNaN(v); !k.Missing {
			k.Value = min(max(v, -math.MaxFloat64), math.MaxFloat64)
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

// cutEvery is the number of keys that are collected beside those of two pages.
const cutEvery = 1024

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
	var page []key // the first keys, in no order
	var last *key  // of those that were the first at the last cut
	cut := func() {
		slices.SortFunc(page, o.compare)
		if len(page) > limit {
			page = page[:limit+1]
			end := page[limit]
			last = &end
		}
	}
	matches := filter(q)
	for i := range t.rows {
		if o.down { // rows are mostly in the order of their names, and of equal values: the page is complete early in both directions
			i = len(t.rows) - 1 - i
		}
		r := &t.rows[i]
		if !matches(r) {
			continue
		}
		out.Total++
		k := o.key(r, i)
		if after != nil && o.compare(k, *after) <= 0 || last != nil && o.compare(k, *last) > 0 {
			continue
		}
		if page = append(page, k); len(page) > 2*limit+cutEvery {
			cut()
		}
	}
	if cut(); len(page) > limit {
		page = page[:limit]
		data, err := json.Marshal(page[limit-1])
		if err != nil {
			return out, err
		}
		out.Next = base64.RawURLEncoding.EncodeToString(data)
	}
	for _, k := range page {
		out.Items = append(out.Items, t.item(k.Index))
		if r := &t.rows[k.Index]; !r.read && r.state == api.StateDone {
			out.Unread = append(out.Unread, out.Items[len(out.Items)-1].ID)
		}
	}
	return out, nil
}

// filter returns the condition of a query.
func filter(q api.ItemQuery) func(r *row) bool {
	var conditions []func(r *row) bool
	if q.State != "" {
		conditions = append(conditions, func(r *row) bool { return r.state == q.State })
	}
	is := func(wanted string, of func(r *row) text) {
		if wanted != "" {
			w := unique.Make(wanted)
			conditions = append(conditions, func(r *row) bool { return of(r) == w })
		}
	}
	is(q.Task, func(r *row) text { return r.task })
	is(q.Method, func(r *row) text { return r.method })
	is(q.Worker, func(r *row) text { return r.worker })
	if q.Reason != "" {
		conditions = append(conditions, func(r *row) bool { return strings.Contains(r.reason.Value(), q.Reason) })
	}
	if q.Name != "" {
		begin, err := hex.DecodeString(q.Name[:len(q.Name)&^1])
		isID := err == nil && len(q.Name) >= 8
		conditions = append(conditions, func(r *row) bool {
			return strings.Contains(r.name.Value(), q.Name) || isID && len(begin) <= len(r.id) && string(r.id[:len(begin)]) == string(begin)
		})
	}
	if q.Warning != "" {
		conditions = append(conditions, func(r *row) bool {
			return q.Warning == "any" && len(r.warnings) > 0 || slices.Contains(r.warnings, q.Warning)
		})
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
