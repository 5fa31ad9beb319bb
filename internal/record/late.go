package record

import (
	"fmt"
	"time"
)

// Late says whether a campaign that has not ended misses its deadline.
type Late string

// The kinds of lateness.
const (
	LateMay  Late = "may"  // the expected end is after the deadline
	LateWill Late = "will" // so is the early end of its 95 % interval
	LateHas  Late = "has"  // the deadline has passed
)

// Lateness compares the expected end of a status with the deadline. last is that of the status before: what is known stays until something else
// is, and a campaign whose end varies about a limit stays on the late side of it, until the next later bound of its interval is before the
// deadline. slack is the time in seconds from the expected end to the deadline, known if the campaign has both, or the deadline has passed.
func (c *Campaign) Lateness(st Status, last Late, now time.Time) (l Late, slack float64, known bool) {
	deadline, err := time.Parse(time.RFC3339, c.Spec.Deadline)
	if err != nil || st.Phase.Ended() {
		return "", 0, false
	}
	until := deadline.Sub(now).Seconds()
	if last == LateHas { // the clock was ahead
		last = LateWill
	}
	switch {
	case until <= 0:
		l = LateHas
	case st.Left == 0:
		return last, 0, false
	case st.LeftLow > until, last == LateWill && st.Left > until:
		l = LateWill
	case st.Left > until, last != "" && st.LeftHigh > until:
		l = LateMay
	}
	return l, until - st.Left, true
}

// Sentence describes the lateness for people; empty: there is none.
func (l Late) Sentence(deadline string) string {
	switch l {
	case LateMay:
		return fmt.Sprintf("the deadline %s may be missed: the end, with its 95 %% interval, is not surely before it", deadline)
	case LateWill:
		return fmt.Sprintf("the deadline %s will be missed at the present rate: the expected end is after it", deadline)
	case LateHas:
		return fmt.Sprintf("the deadline %s has passed", deadline)
	}
	return ""
}
