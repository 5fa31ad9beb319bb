package board

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"

	"ddiff/manifest"
)

type askerKey struct{}

// As returns a copy of ctx in whose name changes are asked for: by a user, with the id of the request; empty: each change has its own.
func As(ctx context.Context, request, by string) context.Context {
	return context.WithValue(ctx, askerKey{}, manifest.Ask{Request: request, By: by})
}

// AskOf returns the change that ctx asks for, see As.
func AskOf(ctx context.Context, verb string) manifest.Ask {
	a, _ := ctx.Value(askerKey{}).(manifest.Ask)
	a.Request, a.Verb = cmp.Or(a.Request, NewRequest()), verb
	return a
}

// NewRequest returns the id of a request.
func NewRequest() string { return rand.Text()[:16] }

// ask notes in a record that a user has asked for a change.
func ask(ctx context.Context, c *manifest.Campaign, verb string) {
	c.Asked++
	a := AskOf(ctx, verb)
	a.Number = c.Asked
	c.Asks = append(c.Asks, a)
	c.Asks = c.Asks[max(0, len(c.Asks)-manifest.MaxAsks):]
}

// LogAsk writes the audit line of a change.
func LogAsk(log *slog.Logger, a manifest.Ask, attributes ...any) {
	log.Info("audit", append([]any{"request", clip(a.Request), "verb", clip(a.Verb), "by", clip(a.By)}, attributes...)...)
}

// clip shortens a text of a user.
func clip(text string) string {
	const longest = 200
	return text[:min(len(text), longest)]
}
