package ledger

import (
	"slices"
	"strings"

	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// State is the state of an identity: an outcome, or pending. Stored parts of the ledger contain these numbers.
type State uint8

// The states of an identity. A state is final unless it is Pending.
const (
	Pending State = iota
	Done
	Failed
	Dead
)

// StateOf returns the state for an outcome, Pending for an unknown one.
func StateOf(o item.Outcome) State {
	switch o {
	case item.OutcomeDone:
		return Done
	case item.OutcomeFailed:
		return Failed
	case item.OutcomeDead:
		return Dead
	}
	return Pending
}

// entry is the ledger's record of one identity.
type entry struct {
	copies uint32 // number of items with this identity
	reason uint32 // index in reasons; 0 without one
	round  uint16 // outcomes of earlier rounds do not count
	state  State
	flags  flags
}

// flags are properties of an identity, in one byte.
type flags uint8

const (
	flagMissing flags = 1 << iota // it was done, but its result was missing from storage, see MarkMissing
	flagFound                     // its stored result was found, see MarkFound
)

// Ledger has the state of every item in about 50 bytes per identity. It is not safe for concurrent use.
type Ledger struct {
	places  map[item.Identity]uint32
	entries []entry
	// reasons has each distinct reason once, reasonIndex its index.
	reasons     []string
	reasonIndex map[string]uint32
	items       int
	counts      [Dead + 1]int // items of the manifest, by state
	open        int           // number of pending identities
	uses        []record.Use  // device-seconds of all outcomes, sorted
}

// maxReason is the maximum length of a reason in bytes, maxReasons the maximum number of distinct reasons. Further
// reasons are replaced by otherReason.
const (
	maxReason   = 300
	maxReasons  = 1 << 16
	otherReason = "another reason; see the result stream"
)

// New returns an empty ledger.
func New() *Ledger {
	return &Ledger{places: map[item.Identity]uint32{}, reasonIndex: map[string]uint32{}, reasons: []string{""}}
}

// Add adds an item of the manifest, in the state of its identity. It reports whether the identity is new.
func (l *Ledger) Add(id string) (isNew bool) {
	k, ok := item.ParseIdentity(id)
	if !ok {
		return false
	}
	place, ok := l.places[k]
	if !ok {
		place = uint32(len(l.entries))
		l.places[k] = place
		l.entries = append(l.entries, entry{})
		l.open++
	}
	e := &l.entries[place]
	e.copies++
	l.items++
	l.counts[e.state]++
	return !ok
}

// Has reports whether the manifest has an item with an identity.
func (l *Ledger) Has(id string) bool { return l.find(id) != nil }

// Items returns the number of items of the manifest.
func (l *Ledger) Items() int { return l.items }

// Open returns the number of pending identities.
func (l *Ledger) Open() int { return l.open }

// find returns the entry of an identity, or nil if it has none.
func (l *Ledger) find(id string) *entry {
	k, ok := item.ParseIdentity(id)
	if !ok {
		return nil
	}
	return l.findIdentity(k)
}

// findIdentity is find with a parsed identity.
func (l *Ledger) findIdentity(k item.Identity) *entry {
	place, ok := l.places[k]
	if !ok {
		return nil
	}
	return &l.entries[place]
}

// Settle sets the final state of an identity and returns the number of items that it settled. The first final state
// is kept, except that done replaces failed and dead: a stored result proves it. Outcomes of rounds before a reopening
// do not count.
func (l *Ledger) Settle(id string, round int, to State, reason string) int {
	return l.settle(l.find(id), round, to, reason)
}

// settle is Settle with an entry, or nil for an unknown identity.
func (l *Ledger) settle(e *entry, round int, to State, reason string) int {
	if e == nil || to == Pending || (round < int(e.round) && (to != Done || e.flags&flagMissing != 0)) || e.state == to || e.state == Done {
		return 0
	}
	if e.state != Pending && to != Done {
		return 0
	}
	l.move(e, to)
	e.reason = l.intern(reason)
	return int(e.copies)
}

// maxSeconds is the largest number of device-seconds of an outcome that counts; no worker states more.
const maxSeconds = 1e8

// maxUses is the largest number of pools and months that are told apart. Further ones count with the last: users may write outcomes.
const maxUses = 500

// Spend counts the device-seconds of an outcome that Settle is about to enter, by the month and the pool of a use: those of the first
// outcome of an identity in each round.
func (l *Ledger) Spend(id string, round int, use record.Use) {
	e := l.find(id)
	if e == nil || e.state != Pending && round >= int(e.round) || !(use.Seconds > 0 && use.Seconds <= maxSeconds) {
		return
	}
	if manifest.CheckPool(use.Pool) != nil {
		use.Pool = manifest.DefaultPool
	}
	l.use(use).Seconds += use.Seconds
}

// use returns the entry of the month and the pool of a use.
func (l *Ledger) use(of record.Use) *record.Use {
	i, found := slices.BinarySearchFunc(l.uses, of, record.Use.Compare)
	switch {
	case !found && len(l.uses) >= maxUses:
		i = len(l.uses) - 1
	case !found:
		l.uses = slices.Insert(l.uses, i, record.Use{Month: of.Month, Pool: of.Pool})
	}
	return &l.uses[i]
}

// Uses returns the device-seconds of all outcomes by month and pool, sorted, without costs.
func (l *Ledger) Uses() []record.Use { return slices.Clone(l.uses) }

// Reopen makes a failed or dead identity pending; from then on only outcomes of the given round and later ones count.
// It reports whether the identity was failed or dead.
func (l *Ledger) Reopen(id string, round int) bool {
	e := l.find(id)
	if e == nil || e.state == Done {
		return false
	}
	e.round = uint16(round)
	if e.state == Pending {
		return false
	}
	l.move(e, Pending)
	e.reason = 0
	return true
}

// MarkMissing makes a done identity pending, because its result is missing from storage. From then on only outcomes of
// the given round and later ones count.
func (l *Ledger) MarkMissing(id string, round int) {
	e := l.find(id)
	if e == nil {
		return
	}
	e.round, e.flags = uint16(round), e.flags|flagMissing
	if e.state == Done {
		l.move(e, Pending)
	}
}

// WasMissing reports whether MarkMissing marked the identity.
func (l *Ledger) WasMissing(id string) bool {
	e := l.find(id)
	return e != nil && e.flags&flagMissing != 0
}

// MarkFound marks an identity that was settled by a stored result, and not by an outcome.
func (l *Ledger) MarkFound(id string) {
	if e := l.find(id); e != nil {
		e.flags |= flagFound
	}
}

// WasFound reports whether MarkFound marked the identity.
func (l *Ledger) WasFound(id string) bool {
	e := l.find(id)
	return e != nil && e.flags&flagFound != 0
}

// Remove removes one item of an identity.
func (l *Ledger) Remove(id string) {
	if e := l.find(id); e != nil && e.copies > 0 {
		e.copies--
		l.items--
		l.counts[e.state]--
		if e.copies == 0 && e.state == Pending {
			l.move(e, Failed) // no item is pending
		}
	}
}

func (l *Ledger) move(e *entry, to State) {
	l.counts[e.state] -= int(e.copies)
	l.counts[to] += int(e.copies)
	if e.state == Pending {
		l.open--
	}
	if to == Pending {
		l.open++
	}
	e.state = to
}

// trimReason limits a reason to maxReason bytes.
func trimReason(reason string) string {
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "")
	}
	return reason
}

func (l *Ledger) intern(reason string) uint32 {
	if reason == "" {
		return 0
	}
	reason = trimReason(reason)
	if i, ok := l.reasonIndex[reason]; ok {
		return i
	}
	if len(l.reasons) >= maxReasons {
		reason = otherReason
		if i, ok := l.reasonIndex[reason]; ok {
			return i
		}
	}
	i := uint32(len(l.reasons))
	l.reasons = append(l.reasons, strings.Clone(reason))
	l.reasonIndex[l.reasons[i]] = i
	return i
}

// State returns the state of an identity; unknown identities are done.
func (l *Ledger) State(id string) State {
	if e := l.find(id); e != nil {
		return e.state
	}
	return Done
}

// Reason returns the reason of a failed or dead identity.
func (l *Ledger) Reason(id string) string {
	if e := l.find(id); e != nil {
		return l.reasons[e.reason]
	}
	return ""
}

// Total counts the items of the manifest by state. leased of the pending items count as running; the other pending
// items count as cancelled if the campaign is cancelled.
func (l *Ledger) Total(leased int, cancelled bool) record.Counts {
	c := record.Counts{Items: l.items, Done: l.counts[Done], Failed: l.counts[Failed], Dead: l.counts[Dead]}
	left := l.counts[Pending]
	c.Running = min(leased, left)
	left -= c.Running
	if cancelled {
		c.Cancelled = left
	} else {
		c.Pending = left
	}
	return c
}
