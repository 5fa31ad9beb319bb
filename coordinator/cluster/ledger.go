package cluster

import (
	"encoding/hex"
	"strings"

	"ddiff/manifest"
)

// identity is the first half of an item's id. Two of a million items share it with a
// probability of 10^-27.
type identity [16]byte

// parseIdentity reads a hex id.
func parseIdentity(id string) (identity, bool) {
	var k identity
	if len(id) < 2*len(k) {
		return k, false
	}
	_, err := hex.Decode(k[:], []byte(id[:2*len(k)]))
	return k, err == nil
}

// state is that of an identity; it is one of the outcomes, or pending.
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

// entry is what the ledger keeps of an identity.
type entry struct {
	copies uint32 // items of the manifest that have it
	reason uint32 // index in reasons; 0 without one
	round  uint16 // outcomes of earlier rounds were taken back
	state  state
	gone   bool // its result was done once and is not in storage any more: see lose
}

// ledger knows the state of every item. It takes some 50 bytes an item, so that a million
// of them fit beside everything else. One goroutine uses it.
type ledger struct {
	places  map[identity]uint32
	entries []entry
	// reasons holds each different reason once; most failures share theirs.
	reasons []string
	known   map[string]uint32
	items   int
	counts  [dead + 1]int // items of the manifest, by state
	open    int           // identities that are pending
}

// maxReason bounds a reason in bytes, maxReasons their number: with more different ones the
// rest is not told apart.
const (
	maxReason  = 200
	maxReasons = 1 << 16
	otherCause = "another reason; see the result stream"
)

func newLedger() *ledger {
	return &ledger{places: map[identity]uint32{}, known: map[string]uint32{}, reasons: []string{""}}
}

// expect enters an item of the manifest. It counts as its identity does.
func (l *ledger) expect(id string) {
	k, ok := parseIdentity(id)
	if !ok {
		return
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
}

// find returns the entry of an identity, or nil.
func (l *ledger) find(id string) *entry {
	k, ok := parseIdentity(id)
	if !ok {
		return nil
	}
	place, ok := l.places[k]
	if !ok {
		return nil
	}
	return &l.entries[place]
}

// settle enters the final state of an identity, and returns the number of items that have it
// by that. The first one stands, but for done, which a result in storage proves: it replaces
// failed and dead. Outcomes of rounds that were taken back do not count.
func (l *ledger) settle(id string, round int, to state, reason string) int {
	e := l.find(id)
	if e == nil || to == pending || (round < int(e.round) && (to != done || e.gone)) || e.state == to || e.state == done {
		return 0
	}
	if e.state != pending && to != done {
		return 0
	}
	l.move(e, to)
	e.reason = l.intern(reason)
	return int(e.copies)
}

// reopen takes the final state of an identity back: only outcomes of the given round and
// later ones count. It tells whether there was one.
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

// lose takes back that an identity is done: its result is not in storage. Only outcomes of the
// given round and later ones count.
func (l *ledger) lose(id string, round int) {
	e := l.find(id)
	if e == nil {
		return
	}
	e.round, e.gone = uint16(round), true
	if e.state == done {
		l.move(e, pending)
	}
}

// replace forgets one item of an identity, which another takes the place of.
func (l *ledger) forget(id string) {
	if e := l.find(id); e != nil && e.copies > 0 {
		e.copies--
		l.items--
		l.counts[e.state]--
		if e.copies == 0 && e.state == pending {
			l.move(e, failed) // nobody waits for it any more
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

func (l *ledger) intern(reason string) uint32 {
	if reason == "" {
		return 0
	}
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "")
	}
	if i, ok := l.known[reason]; ok {
		return i
	}
	if len(l.reasons) >= maxReasons {
		reason = otherCause
		if i, ok := l.known[reason]; ok {
			return i
		}
	}
	i := uint32(len(l.reasons))
	l.reasons = append(l.reasons, strings.Clone(reason))
	l.known[l.reasons[i]] = i
	return i
}

// state tells where an identity stands; unknown ones are done with.
func (l *ledger) state(id string) state {
	if e := l.find(id); e != nil {
		return e.state
	}
	return done
}

// reason is that of an identity that failed or is dead.
func (l *ledger) reason(id string) string {
	if e := l.find(id); e != nil {
		return l.reasons[e.reason]
	}
	return ""
}

// total counts the items of the manifest. Those that are leased count as running.
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
