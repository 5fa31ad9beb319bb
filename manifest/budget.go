package manifest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Budget limits what a campaign, or all campaigns of an owner, may use on a cluster. Zero: no limit.
type Budget struct {
	// Items is the largest number of items.
	Items int `json:"items,omitempty"`
	// Seconds is the number of device-seconds, see [item.Event.Seconds].
	Seconds float64 `json:"seconds,omitempty"`
	// Cost is the cost of the device-seconds at the coordinator's prices.
	Cost float64 `json:"cost,omitempty"`
	// Soft is the share of a limit that causes a warning, at most 1. Default: 0, which is 0.8.
	Soft float64 `json:"soft,omitempty"`
}

// Check returns the name of the first field out of its range, and an error.
func (b Budget) Check() (field string, err error) {
	for _, f := range []struct {
		name  string
		value float64
		most  float64
	}{{"items", float64(b.Items), 1e9}, {"seconds", b.Seconds, 1e12}, {"cost", b.Cost, 1e12}, {"soft", b.Soft, 1}} {
		if !(f.value >= 0 && f.value <= f.most) {
			return f.name, fmt.Errorf("%g is outside 0..%g", f.value, f.most)
		}
	}
	return "", nil
}

// From returns the text with which [Budget.Set] makes b of another budget.
func (b Budget) From(other Budget) string {
	var parts []string
	for _, f := range []struct {
		name       string
		value, old float64
	}{{"items", float64(b.Items), float64(other.Items)}, {"seconds", b.Seconds, other.Seconds}, {"cost", b.Cost, other.Cost}, {"soft", b.Soft, other.Soft}} {
		if f.value != f.old {
			parts = append(parts, f.name+"="+strconv.FormatFloat(f.value, 'f', -1, 64))
		}
	}
	return strings.Join(parts, ",")
}

// Set changes the fields that a text names, as in "items=1000,seconds=3600,cost=5,soft=0.9".
func (b *Budget) Set(text string) error {
	out := *b
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		number, err := strconv.ParseFloat(value, 64)
		switch name {
		case "items":
			out.Items, err = strconv.Atoi(value)
		case "seconds":
			out.Seconds = number
		case "cost":
			out.Cost = number
		case "soft":
			out.Soft = number
		default:
			err = errors.New("unknown field")
		}
		if err != nil {
			return fmt.Errorf("%q is no limit; give items=N, seconds=N, cost=N or soft=SHARE, separated by commas", clip(part))
		}
	}
	if field, err := out.Check(); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	*b = out
	return nil
}
