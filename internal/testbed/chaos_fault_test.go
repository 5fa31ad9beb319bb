package testbed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// kind is a kind of fault.
type kind string

// The kinds of faults; the package comment describes them.
const (
	workerKill         kind = "worker-kill"
	workerSuspend      kind = "worker-suspend"
	workerDrain        kind = "worker-drain"
	coordinatorKill    kind = "coordinator-kill"
	coordinatorSuspend kind = "coordinator-suspend"
	natsKill           kind = "nats-kill"
	natsLeaderKill     kind = "nats-leader-kill"
	streamDelete       kind = "stream-delete"
	s3Unavailable      kind = "s3-unavailable"
	s3Hang             kind = "s3-hang"
	s3Reset            kind = "s3-reset"
	diskFull           kind = "disk-full"
	clock              kind = "clock"
)

var kinds = []kind{
	workerKill, workerSuspend, workerDrain, coordinatorKill, coordinatorSuspend, natsKill, natsLeaderKill,
	streamDelete, s3Unavailable, s3Hang, s3Reset, diskFull, clock,
}

// fault is a drawn fault.
type fault struct {
	number int
	kind   kind
	// The fault starts delay after the number of results reached due.
	due   int
	delay time.Duration
	// hold in [0, 1) scales the duration within the range of the kind.
	hold float64
	// pick selects one of the possible targets.
	pick uint64
	// shift is the offset of a clock.
	shift time.Duration
}

func (f fault) String() string { return fmt.Sprintf("%2d %s", f.number, f.kind) }

// lasts returns the duration: hold scaled to a range.
func (f fault) lasts(from, to time.Duration) time.Duration {
	return from + time.Duration(f.hold*float64(to-from))
}

// lastDue is the share of the items at which the last fault may be due. It leaves time for slow
// faults to hit the campaign.
const lastDue = 0.8

// drawFaults draws faults from decks of all kinds, so that all are about equally frequent.
func drawFaults(seed uint64, n, items int) []fault {
	rng := rand.New(rand.NewPCG(seed, 2))
	var deck []kind
	faults := make([]fault, n)
	for i := range faults {
		if len(deck) == 0 {
			deck = slices.Clone(kinds)
			rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		shift := time.Duration(30+rng.IntN(570)) * time.Second
		if rng.IntN(2) == 0 {
			shift = -shift
		}
		faults[i] = fault{
			kind: deck[0], due: int(rng.Float64() * lastDue * float64(items)),
			delay: time.Duration(rng.IntN(1500)) * time.Millisecond, hold: rng.Float64(), pick: rng.Uint64(), shift: shift,
		}
		deck = deck[1:]
	}
	due := make([]int, n)
	for i, f := range faults {
		due[i] = f.due
	}
	slices.Sort(due) // keeps the order of the decks
	for i := range faults {
		faults[i].number, faults[i].due = i+1, due[i]
	}
	return faults
}

// histogram prints the number of faults of each kind.
func histogram(faults []fault) string {
	counts := map[kind]int{}
	for _, f := range faults {
		counts[f.kind]++
	}
	var parts []string
	for _, k := range kinds {
		if counts[k] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", k, counts[k]))
		}
	}
	return strings.Join(parts, ", ")
}
