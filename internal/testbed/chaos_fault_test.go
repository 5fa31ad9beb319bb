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

// The kinds of faults; the comment of chaos describes them.
const (
	workerKill         kind = "worker-kill"
	workerSuspend      kind = "worker-suspend"
	workerDrain        kind = "worker-drain"
	workerKeys         kind = "worker-keys"
	priorDamage        kind = "prior-damage"
	coordinatorKill    kind = "coordinator-kill"
	coordinatorSuspend kind = "coordinator-suspend"
	leaderKeys         kind = "leader-keys"
	takeover           kind = "takeover-s3-unavailable"
	verbCancel         kind = "verb-cancel"
	verbResume         kind = "verb-resume"
	verbPause          kind = "verb-pause"
	verbRetry          kind = "verb-retry"
	natsKill           kind = "nats-kill"
	natsLeaderKill     kind = "nats-leader-kill"
	streamDelete       kind = "stream-delete"
	s3Unavailable      kind = "s3-unavailable"
	s3Hang             kind = "s3-hang"
	s3Reset            kind = "s3-reset"
	s3Keys             kind = "s3-keys"
	diskFull           kind = "disk-full"
	clock              kind = "clock"

	// Outages of 30 s and longer.
	natsOutage     kind = "nats-outage"
	s3Outage       kind = "s3-outage"
	s3HangOutage   kind = "s3-hang-outage"
	s3KeysOutage   kind = "s3-keys-outage"
	s3ShardsOutage kind = "s3-outage-while-sharding"

	// Faults while a campaign is divided into items.
	shardUnavailable kind = "shard-s3-unavailable"
	shardKeys        kind = "shard-s3-keys"
)

// kinds are the short faults, outages the long ones.
var (
	kinds = []kind{
		workerKill, workerSuspend, workerDrain, workerKeys, priorDamage, coordinatorKill, coordinatorSuspend, leaderKeys,
		takeover, verbCancel, verbResume, verbPause, verbRetry, natsKill, natsLeaderKill, streamDelete, s3Unavailable,
		s3Hang, s3Reset, s3Keys, diskFull, clock,
	}
	outages       = []kind{s3Outage, natsOutage, s3KeysOutage, s3HangOutage, s3ShardsOutage}
	shardingKinds = []kind{shardUnavailable, shardKeys}
)

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

// key returns the drawn kind of refused keys.
func (f fault) key() refusal { return badKeys[f.pick%uint64(len(badKeys))] }

// lastDue is the share of the items at which the last fault may be due. It leaves time for slow
// faults to hit the campaign.
const lastDue = 0.8

// drawFaults draws the faults of a seed. Consecutive seeds share shuffled decks of all kinds: a seed continues where the
// seed before it ended, so that all kinds are about equally frequent in a list of seeds. outage adds one outage of 30 s
// or longer, which is due at a drawn number of results.
func drawFaults(seed uint64, n, items int, outage bool) []fault {
	rng := rand.New(rand.NewPCG(seed, 2))
	faults := make([]fault, n)
	for i := range faults {
		faults[i] = drawFault(rng, dealt(seed*uint64(n)+uint64(i)), items)
	}
	due := make([]int, n)
	for i, f := range faults {
		due[i] = f.due
	}
	slices.Sort(due) // keeps the order of the decks
	for i := range faults {
		faults[i].due = due[i]
	}
	if k := outages[seed%uint64(len(outages))]; outage && k != s3ShardsOutage {
		long := drawFault(rng, k, items)
		long.due /= 2
		at, _ := slices.BinarySearchFunc(faults, long.due, func(f fault, due int) int { return f.due - due })
		faults = slices.Insert(faults, at, long)
	}
	for i := range faults {
		faults[i].number = i + 1
	}
	return faults
}

// dealt returns the kind at a position of the sequence of shuffled decks.
func dealt(position uint64) kind {
	deck, n := slices.Clone(kinds), uint64(len(kinds))
	rng := rand.New(rand.NewPCG(position/n, 3))
	rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	return deck[position%n]
}

func drawFault(rng *rand.Rand, k kind, items int) fault {
	shift := time.Duration(30+rng.IntN(570)) * time.Second
	if rng.IntN(2) == 0 {
		shift = -shift
	}
	return fault{
		kind: k, due: int(rng.Float64() * lastDue * float64(items)),
		delay: time.Duration(rng.IntN(1500)) * time.Millisecond, hold: rng.Float64(), pick: rng.Uint64(), shift: shift,
	}
}

// drawShardFault draws the fault that hits while the campaign of a seed is divided into items. It is due at a number of
// images read.
func drawShardFault(seed uint64, images int, outage bool) fault {
	rng := rand.New(rand.NewPCG(seed, 4))
	k := shardingKinds[seed%uint64(len(shardingKinds))]
	if outage && outages[seed%uint64(len(outages))] == s3ShardsOutage {
		k = s3ShardsOutage
	}
	f := drawFault(rng, k, images)
	f.due = 1 + rng.IntN(images*3/4)
	return f
}

// histogram prints the number of faults of each kind.
func histogram(faults []fault) string {
	counts := map[kind]int{}
	for _, f := range faults {
		counts[f.kind]++
	}
	var parts []string
	for _, k := range slices.Concat(kinds, outages, shardingKinds) {
		if counts[k] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", k, counts[k]))
		}
	}
	return strings.Join(parts, ", ")
}
