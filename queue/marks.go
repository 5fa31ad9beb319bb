package queue

import (
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

// Headers of a released item, see Marks.
const (
	headerFaults   = "Ddiff-Faults"
	headerDisputed = "Ddiff-Disputed" // tokens of names, separated by commas
	headerPasses   = "Ddiff-Passes"
)

// Marks travel with a released item to its next worker. Programs that do not know them copy them unchanged.
type Marks struct {
	// Faults counts the releases after a failure of a worker's environment, such as an unavailable store.
	Faults int
	// Disputed names the workers that could not restore the item for a reason that may be their own.
	Disputed []string
	// Passes counts the releases by workers in Disputed that left the item to another worker.
	Passes int
}

// Marks returns the marks of the item.
func (l *Lease) Marks() Marks {
	h := l.msg.Headers()
	m := Marks{Faults: intHeader(h, headerFaults), Passes: intHeader(h, headerPasses)}
	for token := range strings.SplitSeq(h.Get(headerDisputed), ",") {
		if name, err := untoken(token); err == nil && name != "" {
			m.Disputed = append(m.Disputed, name)
		}
	}
	return m
}

// MaxAttempts returns the number of attempts of the campaign.
func (l *Lease) MaxAttempts() int { return l.q.cfg.MaxAttempts }

func (m Marks) write(header nats.Header) {
	var tokens []string
	for _, name := range m.Disputed {
		tokens = append(tokens, Token(name))
	}
	slices.Sort(tokens)
	set := func(key, value string, present bool) {
		delete(header, key)
		if present {
			header[key] = []string{value}
		}
	}
	set(headerFaults, strconv.Itoa(m.Faults), m.Faults > 0)
	set(headerDisputed, strings.Join(slices.Compact(tokens), ","), len(tokens) > 0)
	set(headerPasses, strconv.Itoa(m.Passes), m.Passes > 0)
}
