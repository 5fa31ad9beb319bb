package gpuworker

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
)

const (
	storedLines = 512 // of all items
	itemLines   = 20  // returned for one item
	lineLimit   = 500 // bytes
)

// Tail is a log handler that stores the last lines about items, as text. It stores all lines of level info and
// above, whatever the level of the next handler.
type Tail struct {
	slog.Handler

	mu    sync.Mutex
	lines [storedLines]tailLine
	next  int
}

type tailLine struct{ item, text string }

// NewTail returns a Tail that passes records on to next.
func NewTail(next slog.Handler) *Tail {
	t := &Tail{}
	t.Handler = slog.NewMultiHandler(next, slog.NewTextHandler(t, &slog.HandlerOptions{ReplaceAttr: leaveOut}))
	return t
}

// leaveOut leaves out the attributes that the record of an attempt has.
func leaveOut(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && slices.Contains([]string{keyCampaign, keyTrace, keySpan, keyWorker}, a.Key) {
		return slog.Attr{}
	}
	return a
}

// Write stores one line, of the item that its attribute id names.
func (t *Tail) Write(line []byte) (int, error) {
	text, item := strings.TrimSpace(string(line)), ""
	if before, after, found := strings.Cut(text, " "+keyID+"="); found {
		var rest string
		item, rest, _ = strings.Cut(after, " ")
		text = strings.TrimSpace(before + " " + rest)
	}
	if len(text) > lineLimit {
		text = strings.ToValidUTF8(text[:lineLimit], "") + "…"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines[t.next%storedLines] = tailLine{item, text}
	t.next++
	return len(line), nil
}

// Lines returns the last lines about the item with an identity, and with shared those about no item, oldest first.
func (t *Tail) Lines(id string, shared bool) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for i := max(0, t.next-storedLines); i < t.next; i++ {
		if l := t.lines[i%storedLines]; l.item == id || shared && l.item == "" {
			out = append(out, l.text)
		}
	}
	return out[max(0, len(out)-itemLines):]
}
