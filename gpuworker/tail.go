package gpuworker

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	storedLines = 512 // of all items
	itemLines   = 20  // returned for one item
	lineLimit   = 500 // bytes
)

// Tail is a log handler that stores the last lines for the dead letters of items. It stores all lines of level info and
// above, whatever the level of the next handler.
type Tail struct {
	next  slog.Handler
	lines *ring
	group string // of attributes, with a trailing dot
	attrs string // of WithAttrs, as text
	item  string // identity
}

// ring holds the last lines of all handlers that derive from one Tail.
type ring struct {
	mu    sync.Mutex
	lines [storedLines]tailLine
	next  int
}

type tailLine struct{ item, text string }

// NewTail returns a Tail that passes records on to next.
func NewTail(next slog.Handler) *Tail { return &Tail{next: next, lines: &ring{}} }

// Enabled implements slog.Handler.
func (t *Tail) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || t.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (t *Tail) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelInfo {
		c := *t
		r.Attrs(func(a slog.Attr) bool {
			c.add(a)
			return true
		})
		text := r.Time.UTC().Format(time.RFC3339) + " " + r.Level.String() + " " + r.Message + c.attrs
		if len(text) > lineLimit {
			text = strings.ToValidUTF8(text[:lineLimit], "") + "…"
		}
		t.lines.add(tailLine{c.item, strings.Join(strings.Fields(text), " ")})
	}
	if !t.next.Enabled(ctx, r.Level) {
		return nil
	}
	return t.next.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (t *Tail) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *t
	c.next = t.next.WithAttrs(attrs)
	for _, a := range attrs {
		c.add(a)
	}
	return &c
}

// WithGroup implements slog.Handler.
func (t *Tail) WithGroup(name string) slog.Handler {
	c := *t
	c.next = t.next.WithGroup(name)
	if name != "" {
		c.group += name + "."
	}
	return &c
}

func (t *Tail) add(a slog.Attr) {
	if a.Equal(slog.Attr{}) {
		return
	}
	if t.group == "" {
		switch a.Key {
		case keyID:
			t.item = a.Value.String()
			return
		case keyCampaign, keyTrace, keySpan, keyWorker: // the record of the attempt has them
			return
		}
	}
	t.attrs += fmt.Sprintf(" %s%s=%v", t.group, a.Key, a.Value)
}

func (r *ring) add(l tailLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines[r.next%storedLines] = l
	r.next++
}

// Lines returns the last lines about the item with an identity, and with shared those about no item, oldest first.
func (t *Tail) Lines(id string, shared bool) []string {
	r := t.lines
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for i := max(0, r.next-storedLines); i < r.next; i++ {
		if l := r.lines[i%storedLines]; l.item == id || shared && l.item == "" {
			out = append(out, l.text)
		}
	}
	return out[max(0, len(out)-itemLines):]
}
