package main

import "fmt"

// An outcome is the result of the tests on a mutant.
type outcome int

const (
	noticed  outcome = iota // a test failed, crashed, or computed without end
	survived                // all tests passed
	unbuilt                 // the mutant does not compile
	timedOut                // the tests waited past their time; whether without end is unknown
)

func (o outcome) String() string {
	return [...]string{"noticed", "survived", "not compiled", "timed out"}[o]
}

// score counts the mutants of a package. Equivalent mutants are in no other count.
type score struct {
	name                          string
	reached, unreached            int
	noticed, survived             int
	unbuilt, timedOut, equivalent int
}

func (s *score) add(o outcome) {
	switch o {
	case noticed:
		s.noticed++
	case survived:
		s.survived++
	case unbuilt:
		s.unbuilt++
	case timedOut:
		s.timedOut++
	}
}

// shareNoticed is the share of noticed mutants among those that were tried, compile and did not time out: 0 if there
// are none.
func (s score) shareNoticed() float64 { return share(s.noticed, s.noticed+s.survived) }

// shareUnreached is the share of mutants that no test reaches: 0 if there are no mutants.
func (s score) shareUnreached() float64 { return share(s.unreached, s.reached+s.unreached) }

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func (s score) reachesGoal() bool {
	return s.shareNoticed() >= leastNoticed && s.shareUnreached() <= mostUnreached
}

// String returns the line for scripts. Shares are cut after two digits, and the share of unreached mutants is rounded
// up, so that a line never shows a goal that is missed.
func (s score) String() string {
	return fmt.Sprintf("package=%s noticed=%.2f unreached=%.2f tried=%d of=%d survived=%d timed_out=%d not_compiled=%d equivalent=%d",
		s.name, float64(int(s.shareNoticed()*100+1e-9))/100, float64(int(s.shareUnreached()*100+1-1e-9))/100,
		s.noticed+s.survived+s.timedOut+s.unbuilt, s.reached, s.survived, s.timedOut, s.unbuilt, s.equivalent)
}
