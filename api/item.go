package api

import (
	"encoding/json"
	"strings"
	"time"

	"ddiff/manifest"
)

// State is the state of an item.
type State string

// The states of items. An item that a worker holds is pending.
const (
	StatePending State = "pending"
	StateDone    State = "done"
	StateFailed  State = "failed"
	StateDead    State = "dead"
)

// ItemQuery selects, sorts and pages the items of a campaign. Empty fields select all.
type ItemQuery struct {
	State   State  `query:"state" enum:"pending,done,failed,dead"`
	Task    string `query:"task" maxLength:"100" doc:"Name of a task"`
	Method  string `query:"method" maxLength:"100" doc:"Name of a method"`
	Name    string `query:"name" maxLength:"200" doc:"Text in the name of the image, or the beginning of an item's id"`
	Warning string `query:"warning" maxLength:"100" doc:"Code of a warning, or any"`
	Worker  string `query:"worker" maxLength:"200" doc:"Name of the worker"`
	Reason  string `query:"reason" maxLength:"200" doc:"Text in the reason"`
	// Sort is index, name, seconds or a metric; a minus before it reverses the order. Items without the value come last.
	Sort string `query:"sort" default:"index" maxLength:"40" doc:"index, name, seconds or a metric such as psnr; with a minus before it, descending"`
	// Limit is the number of items in the answer.
	Limit int `query:"limit" default:"100" minimum:"1" maximum:"1000"`
	// Cursor is Items.Next of the answer before.
	Cursor string `query:"cursor" maxLength:"2000" doc:"The value next of the answer before"`
}

// NeedsResults reports whether the query sorts or filters by what only a result has.
func (q ItemQuery) NeedsResults() bool {
	order := strings.TrimPrefix(q.Sort, "-")
	return q.Warning != "" || q.Worker != "" || order != "" && order != "index" && order != "name"
}

// Items is a page of items.
type Items struct {
	Items []Item `json:"items"`
	// Next is the cursor of the next page; empty on the last one.
	Next string `json:"next,omitempty"`
	// Total is the number of items that match, Listed that of the campaign so far, and Read how many results of done items were read. While
	// Read is below the number of done items, filters and orders by what a result has are incomplete.
	Total  int `json:"total"`
	Listed int `json:"listed"`
	Read   int `json:"read"`
	Done   int `json:"done"`
	// Unread are the done items of the page whose results were not read.
	Unread []string `json:"-"`
}

// Throughput counts the results of a campaign over time.
type Throughput struct {
	// From is the begin of the first interval, Seconds the length of each. Items has the number of results that were finished in each; the last
	// interval may not be over.
	From    time.Time `json:"from"`
	Seconds int       `json:"seconds"`
	Items   []int     `json:"items"`
	// Read of Done results were read, as in Items.
	Read int `json:"read"`
	Done int `json:"done"`
}

// Item is one row of a list of items.
type Item struct {
	ID     string `json:"id"`
	Index  int    `json:"index"`
	Name   string `json:"name"`
	Task   string `json:"task"`
	Method string `json:"method"`
	Run    int    `json:"run"`
	State  State  `json:"state"`
	// Metrics maps names, as in results.csv, to values of six digits.
	Metrics  map[string]float32 `json:"metrics,omitempty"`
	Reason   string             `json:"reason,omitempty"`
	Warnings []string           `json:"warnings,omitempty"`
	Seconds  float32            `json:"seconds,omitempty"`
	Worker   string             `json:"worker,omitempty"`
}

// ItemDetail is one item with its result.
type ItemDetail struct {
	Item
	// Settings is the work item: sources, sizes, parameters, the method's settings, digests.
	Settings manifest.Item `json:"settings"`
	// Result is result.json of a done item, see manifest.Result.
	Result json.RawMessage `json:"result,omitempty"`
	// Files are those in the item's folder, in the order of their names.
	Files []File `json:"files"`
}

// File is a file of an item.
type File struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}
