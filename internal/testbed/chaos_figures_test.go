package testbed

import (
	"fmt"
	"math"
	"time"
)

// figures are the results of one seed, or of several.
type figures struct {
	items, faults, done, dead, lost, duplicates, redelivered int
	recovery                                                 time.Duration
	// poison: dead items of poison. innocent: other dead items beside poison.
	poison, innocent int
}

// add adds the figures of another seed.
func (f *figures) add(x figures) {
	f.items += x.items
	f.faults += x.faults
	f.done += x.done
	f.dead += x.dead
	f.lost += x.lost
	f.duplicates += x.duplicates
	f.redelivered += x.redelivered
	f.recovery = max(f.recovery, x.recovery)
	f.poison += x.poison
	f.innocent += x.innocent
}

// line returns the line that scripts read. label is seed=N or seeds=N.
func (f figures) line(label string) string {
	return fmt.Sprintf("items=%d faults=%d done=%d dead=%d lost=%d duplicates=%d redelivered=%d recovery_max_s=%d %s poison_dead=%d innocent_dead=%d",
		f.items, f.faults, f.done, f.dead, f.lost, f.duplicates, f.redelivered, int(math.Ceil(f.recovery.Seconds())), label, f.poison, f.innocent)
}
