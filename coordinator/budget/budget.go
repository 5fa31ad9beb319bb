// Package budget compares what campaigns have used with the budgets of campaigns and the quotas of owners.
package budget

import (
	"fmt"
	"strings"

	"ddiff/manifest"
)

// Used is what a campaign, or all campaigns of an owner, have used.
type Used struct {
	Items         int
	Seconds, Cost float64
}

// Add returns the sum.
func (u Used) Add(v Used) Used {
	return Used{u.Items + v.Items, u.Seconds + v.Seconds, u.Cost + v.Cost}
}

// softShare is the default of [manifest.Budget.Soft].
const softShare = 0.8

// Compare returns one text on the limits that are used up, and one on those that are nearly so; each is empty without one. Items may be
// as many as their limit, device-seconds and cost must stay below it.
func Compare(b manifest.Budget, u Used) (over, near string) {
	soft := b.Soft
	if soft == 0 {
		soft = softShare
	}
	var hard, warn []string
	note := func(used, limit float64, reached bool, text string) {
		switch {
		case limit == 0:
		case reached:
			hard = append(hard, text)
		case used >= soft*limit:
			warn = append(warn, text)
		}
	}
	note(float64(u.Items), float64(b.Items), u.Items > b.Items, fmt.Sprintf("%d of %d items", u.Items, b.Items))
	note(u.Seconds, b.Seconds, u.Seconds >= b.Seconds, amount(u.Seconds)+" of "+amount(b.Seconds)+" device-seconds")
	note(u.Cost, b.Cost, u.Cost >= b.Cost, "a cost of "+amount(u.Cost)+" of "+amount(b.Cost))
	return strings.Join(hard, " and "), strings.Join(warn, " and ")
}

// amount formats a number with three digits or more.
func amount(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.3g", v)
	}
	return fmt.Sprintf("%.0f", v)
}
