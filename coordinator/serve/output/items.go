package output

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ddiff/api"
)

// page selects, sorts and cuts the items. The cursor is the number of items before the page.
func (c *campaign) page(q api.ItemQuery) (api.Items, error) {
	at := 0
	if q.Cursor != "" {
		var err error
		if at, err = strconv.Atoi(q.Cursor); err != nil || at < 0 {
			return api.Items{}, fmt.Errorf("%w: cursor %q is none that this server made", api.ErrInvalid, q.Cursor)
		}
	}
	c.mu.Lock()
	all := slices.Clone(c.rows)
	c.mu.Unlock()
	page := api.Items{Items: []api.Item{}, Listed: len(all)}
	for _, i := range all {
		if i.State == api.StateDone {
			page.Done++
		}
	}
	page.Read = page.Done
	matching := slices.DeleteFunc(all, func(i api.Item) bool { return !matches(&i, &q) })
	sortItems(matching, q.Sort)
	page.Total = len(matching)
	at = min(at, len(matching))
	end := min(at+cmp.Or(q.Limit, 100), len(matching))
	page.Items = append(page.Items, matching[at:end]...)
	if end < len(matching) {
		page.Next = strconv.Itoa(end)
	}
	return page, nil
}

func matches(i *api.Item, q *api.ItemQuery) bool {
	return (q.State == "" || i.State == q.State) && (q.Task == "" || i.Task == q.Task) && (q.Method == "" || i.Method == q.Method) &&
		(q.Name == "" || strings.Contains(strings.ToLower(i.Name), strings.ToLower(q.Name)) || strings.HasPrefix(i.ID, q.Name)) &&
		(q.Warning == "" || q.Warning == "any" && len(i.Warnings) > 0 || slices.Contains(i.Warnings, q.Warning)) &&
		(q.Worker == "" || i.Worker == q.Worker) && (q.Reason == "" || strings.Contains(i.Reason, q.Reason))
}

// sortItems sorts by a column, in descending order after a minus. Items without the value come last, ties are in the order of the dataset.
func sortItems(items []api.Item, by string) {
	by, down := strings.CutPrefix(by, "-")
	value := func(i *api.Item) (float32, bool) {
		if by == "seconds" {
			return i.Seconds, i.Seconds > 0
		}
		v, ok := i.Metrics[by]
		return v, ok
	}
	slices.SortStableFunc(items, func(a, b api.Item) int {
		order := cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.ID, b.ID))
		if by == "" || by == "index" || by == "name" {
			if by == "name" {
				order = cmp.Or(cmp.Compare(a.Name, b.Name), order)
			}
			if down {
				return -order
			}
			return order
		}
		x, hasX := value(&a)
		y, hasY := value(&b)
		switch {
		case hasX != hasY && hasX:
			return -1
		case hasX != hasY:
			return 1
		case down:
			return cmp.Or(cmp.Compare(y, x), order)
		}
		return cmp.Or(cmp.Compare(x, y), order)
	})
}
