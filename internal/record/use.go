package record

import (
	"cmp"
	"time"
)

// Use is what the workers of a pool computed for a campaign in a month.
type Use struct {
	// Month is the month of the outcomes in UTC, as in 2026-11.
	Month string `json:"month"`
	Pool  string `json:"pool"`
	// Seconds is the number of device-seconds, see [item.Event.Seconds], and Cost what they cost; 0 without a price of the pool.
	Seconds float64 `json:"device_seconds"`
	Cost    float64 `json:"cost,omitempty"`
}

// MonthOf returns the month of a time as [Use] has it.
func MonthOf(t time.Time) string { return t.UTC().Format("2006-01") }

// Compare orders uses by month and pool.
func (u Use) Compare(v Use) int {
	return cmp.Or(cmp.Compare(u.Month, v.Month), cmp.Compare(u.Pool, v.Pool))
}
