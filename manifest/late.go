package manifest

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

// Lateness compares the expected end of a status with the deadline. slack is the time in seconds from the expected end to the deadline, known
// if the campaign has both.
func (s *Spec) Lateness(st Status, now time.Time) (l Late, slack float64, known bool) {
	deadline, err := time.Parse(time.RFC3339, s.Deadline)
	if err != nil || st.Phase.Ended() {
		return "", 0, false
	}
	until := deadline.Sub(now).Seconds()
	switch {
	case until <= 0:
		l = LateHas
	case st.LeftLow > until:
		l = LateWill
	case st.Left > until:
		l = LateMay
	}
	return l, until - st.Left, st.Left > 0
}

// Sentence describes the lateness for people; empty: there is none.
func (l Late) Sentence(deadline string) string {
	switch l {
	case LateMay:
		return fmt.Sprintf("the deadline %s may be missed: the expected end is after it", deadline)
	case LateWill:
		return fmt.Sprintf("the deadline %s will be missed at the present rate: the whole 95 %% interval of the end is after it", deadline)
	case LateHas:
		return fmt.Sprintf("the deadline %s has passed", deadline)
	}
	return ""
}
