package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"ddiff/coordinator/report/sweep"
	"ddiff/coordinator/report/table"
	"ddiff/internal/cli"
	"ddiff/manifest"
)

// maxChanged bounds the cells that are compared.
const maxChanged = 1000

// Changes compares a campaign with the last report of its output, and says which settings changed: results with other settings do not
// count as done. Its methods may be called concurrently.
type Changes struct {
	mu   sync.Mutex
	old  []sweep.Cell
	new  []sweep.Cell // in order
	seen map[sweep.Cell]bool
}

// NewChanges reads the last report of an output, if it has one.
func NewChanges(ctx context.Context, output interface {
	Get(ctx context.Context, key string) ([]byte, error)
}) *Changes {
	var report struct {
		Rows []sweep.Cell `json:"rows"`
	}
	data, err := output.Get(ctx, table.KeySummaryJSON)
	if err == nil {
		err = json.Unmarshal(data, &report)
	}
	if err != nil || len(report.Rows) > maxChanged {
		report.Rows = nil
	}
	return &Changes{old: report.Rows, seen: make(map[sweep.Cell]bool)}
}

// Add adds an item of the campaign.
func (c *Changes) Add(it *manifest.Item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.old) == 0 || len(c.new) == maxChanged {
		return
	}
	cell, err := sweep.CellOf(it)
	if err == nil && cell.Resolved() && !c.seen[cell] {
		c.seen[cell] = true
		c.new = append(c.new, cell)
	}
}

// Lines describes each problem and approach of the campaign that is not in the report, by the most similar one of its task and method
// that is in the report alone.
func (c *Changes) Lines() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, cell := range c.new {
		if slices.Contains(c.old, cell) {
			continue
		}
		var best []string
		for _, old := range c.old {
			if old.Task != cell.Task || old.Method != cell.Method || !old.Resolved() || c.seen[old] {
				continue
			}
			if d := differences(old, cell); best == nil || len(d) < len(best) {
				best = d
			}
		}
		if best != nil {
			out = append(out, fmt.Sprintf("changed since the last report of this output: %s, %s: %s", cell.Task, cell.Method, strings.Join(best, ", ")))
		}
	}
	if more := len(out) - cli.MaxLines; more > 0 {
		out = append(out[:cli.MaxLines], fmt.Sprintf("and %d more", more))
	}
	return out
}

// differences lists the settings in which two cells differ, as in "gamma0 8 -> 4".
func differences(a, b sweep.Cell) []string {
	values := func(c sweep.Cell) map[string]string {
		of := map[string]string{
			"sigma": c.Sigma.String(), "photons": c.PhotonsText(), "size": c.Size, "prior": sweep.ShortPrior(c.Prior), "precision": string(c.Precision),
		}
		for _, list := range []string{c.Params, c.Settings} {
			for _, assignment := range sweep.Assignments(list) {
				name, value, _ := strings.Cut(assignment, "=")
				of[name] = value
			}
		}
		return of
	}
	old, now := values(a), values(b)
	all := maps.Clone(old)
	maps.Copy(all, now)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if x, y := old[name], now[name]; x != y {
			out = append(out, fmt.Sprintf("%s %s -> %s", name, orNone(x), orNone(y)))
		}
	}
	return out
}

func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return value
}
