package coordinator

import (
	"encoding/hex"
	"strings"

	"ddiff/manifest"
)

// identity is the first half of an item's id. The probability that two of a million items share it is 10^-27.
type identity [16]byte

// parseIdentity decodes a hex id.
func parseIdentity(id string) (identity, bool) {
	var k identity
	if len(id) < 2*len(k) {
		return k, false
	}
	_, err := hex.Decode(k[:], []byte(id[:2*len(k)]))
	return k, err == nil
}

// state is the state of an identity: an outcome, or pending. Stored parts of the ledger contain these numbers.
type state uint8

const (
	pending state = iota
	done
	failed
	dead
)

func stateOf(o manifest.Outcome) state {
	switch o {
	case manifest.OutcomeDone:
		return done
	case manifest.OutcomeFailed:
		return failed
	case manifest.OutcomeDead:
		return dead
	}
	return pending
}

// entry is the ledger's record of one identity.
type entry struct {
	copies uint32 // number of items with this identity
	reason uint32 // index in reasons; 0 without one
	round  uint16 // outcomes of earlier rounds do not count
	state  state
	flags  flags
}

// flags are properties of an identity, in one byte.
type flags uint8

const (
	flagMissing flags = 1 << iota // it was done, but its result was missing from storage, see markMissing
	flagFound                     // its stored result was found, see markFound
)

// ledger has the state of every item in about 50 bytes per identity. It is not safe for concurrent use.
type ledger struct {
	places  map[identity]uint32
	entries []entry
	// reasons has each distinct reason once, reasonIndex its index.
	reasons     []string
	reasonIndex map[string]uint32
	items       int
	counts      [dead + 1]int // items of the manifest, by state
	open        int           // number of pending identities
}

// maxReason is the maximum length of a reason in bytes, maxReasons the maximum number of distinct reasons. Further
// reasons are replaced by otherReason.
const (
	maxReason   = 300
	maxReasons  = 1 << 16
	otherReason = "another reason; see the result stream"
)

func newLedger() *ledger {
	return &ledger{places: map[identity]uint32{}, reasonIndex: map[string]uint32{}, reasons: []string{""}}
}

// reserve makes room for n identities in an empty ledger.
func (l *ledger) reserve(n int) {
	l.places, l.entries = make(map[identity]uint32, n), make([]entry, 0, n)
}

// add adds an item of the manifest, in the state of its identity. It reports whether the identity is new.
func (l *ledger) add(id string) (isNew bool) {
	k, ok := parseIdentity(id)
	return ok && l.addIdentity(k)
}

// addIdentity is add with a parsed identity.
func (l *ledger) addIdentity(k identity) (isNew bool) {
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

// find returns the entry of an identity, or nil if it has none.
func (l *ledger) find(id string) *entry {
	k, ok := parseIdentity(id)
	if !ok {
		return nil
	}
	return l.findIdentity(k)
}

// findIdentity is find with a parsed identity.
func (l *ledger) findIdentity(k identity) *entry {
	place, ok := l.places[k]
	if !ok {
		return nil
	}
	return &l.entries[place]
}

// settle sets the final state of an identity and returns the number of items that it settled. The first final state
// is kept, except that done replaces failed and dead: a stored result proves it. Outcomes of rounds before a reopening
// do not count.
func (l *ledger) settle(id string, round int, to state, reason string) int {
	return l.settleEntry(l.find(id), round, to, reason)
}

// settleEntry is settle with an entry, or nil for an unknown identity.
func (l *ledger) settleEntry(e *entry, round int, to state, reason string) int {
	if e == nil || to == pending || (round < int(e.round) && (to != done || e.flags&flagMissing != 0)) || e.state == to || e.state == done {
		return 0
	}
	if e.state != pending && to != done {
		return 0
	}
	l.move(e, to)
	e.reason = l.intern(reason)
	return int(e.copies)
}

// reopen makes a failed or dead identity pending; from then on only outcomes of the given round and later ones count.
// It reports whether the identity was failed or dead.
func (l *ledger) reopen(id string, round int) bool {
	e := l.find(id)
	if e == nil || e.state == done {
		return false
	}
	e.round = uint16(round)
	if e.state == pending {
		return false
	}
	l.move(e, pending)
	e.reason = 0
	return true
}

// markMissing makes a done identity pending, because its result is missing from storage. From then on only outcomes of
// the given round and later ones count.
func (l *ledger) markMissing(id string, round int) {
	e := l.find(id)
	if e == nil {
		return
	}
	e.round, e.flags = uint16(round), e.flags|flagMissing
	if e.state == done {
		l.move(e, pending)
	}
}

// markFound marks an identity that was settled by a stored result, and not by an outcome.
func (l *ledger) markFound(id string) {
	if e := l.find(id); e != nil {
		e.flags |= flagFound
	}
}

// wasFound reports whether markFound marked the identity.
func (l *ledger) wasFound(id string) bool {
	e := l.find(id)
	return e != nil && e.flags&flagFound != 0
}

// remove removes one item of an identity.
func (l *ledger) remove(id string) {
	if e := l.find(id); e != nil && e.copies > 0 {
		e.copies--
		l.items--
		l.counts[e.state]--
		if e.copies == 0 && e.state == pending {
			l.move(e, failed) // no item is pending
		}
	}
}

func (l *ledger) move(e *entry, to state) {
	l.counts[e.state] -= int(e.copies)
	l.counts[to] += int(e.copies)
	if e.state == pending {
		l.open--
	}
	if to == pending {
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

func (l *ledger) intern(reason string) uint32 {
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

// state returns the state of an identity; unknown identities are done.
func (l *ledger) state(id string) state {
	if e := l.find(id); e != nil {
		return e.state
	}
	return done
}

// reason returns the reason of a failed or dead identity.
func (l *ledger) reason(id string) string {
	if e := l.find(id); e != nil {
		return l.reasons[e.reason]
	}
	return ""
}

// total counts the items of the manifest by state. leased of the pending items count as running; the other pending
// items count as cancelled if the campaign is cancelled.
func (l *ledger) total(leased int, cancelled bool) manifest.Counts {
	c := manifest.Counts{Items: l.items, Done: l.counts[done], Failed: l.counts[failed], Dead: l.counts[dead]}
	left := l.counts[pending]
	c.Running = min(leased, left)
	left -= c.Running
	if cancelled {
		c.Cancelled = left
	} else {
		c.Pending = left
	}
	return c
}
