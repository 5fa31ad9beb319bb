package coordinator

import (
	"context"
	"errors"
	"fmt"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/record"
	"ddiff/internal/redact"
)

// command is a verb that the runner of a campaign executes, because it needs the ledger.
type command struct {
	key, verb string
	board.Command
	done chan struct{} // closed at its end
	// out has the number of published items, err is a rejection or errGone.
	out api.Appended
	err error
}

// errGone: the runner has ended before it has executed a command.
var errGone = api.NewError(api.ErrUnavailable, "the campaign has ended, or was deleted, before the command was executed; repeat it")

// ask gives the runner a command, or returns the one with the same key.
func (r *campaign) ask(key, verb string, body board.Command) *command {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.asked {
		if c.key == key {
			return c
		}
	}
	c := &command{key: key, verb: verb, Command: body, done: make(chan struct{})}
	r.asked = append(r.asked, c)
	r.signal()
	return c
}

// await returns the answer once a command has ended.
func (c *command) await(ctx context.Context) (api.Appended, error) {
	select {
	case <-c.done:
		return c.out, c.err
	case <-ctx.Done():
		return api.Appended{}, ctx.Err()
	}
}

// nextAsked returns the first command that waits, nil without one.
func (r *campaign) nextAsked() *command {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.asked) == 0 {
		return nil
	}
	return r.asked[0]
}

// answer ends the first command that waits.
func (r *campaign) answer(out api.Appended, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.asked[0]
	r.asked = r.asked[1:]
	c.out, c.err = out, err
	close(c.done)
}

// refuse ends the commands that wait.
func (r *campaign) refuse(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuseAsked(err)
}

// refuseAsked is refuse of a caller that holds r.mu.
func (r *campaign) refuseAsked(err error) {
	for _, c := range r.asked {
		c.err = err
		close(c.done)
	}
	r.asked = nil
}

// executeAsked executes the commands that wait.
func (r *runner) executeAsked(ctx context.Context) error {
	for c := r.nextAsked(); c != nil; c = r.nextAsked() {
		out, err := r.execute(ctx, c)
		var refused rejection
		if err != nil && (ctx.Err() != nil || !errors.As(err, &refused)) {
			return err // the runner opens the campaign again and repeats the command
		}
		if err != nil {
			err = fmt.Errorf("%s campaign %s: %w: %s", c.verb, r.id, board.ErrRefused, brief(err.Error()))
		}
		r.log.Info("executed command", "verb", c.verb, "items", out.Items, "error", err)
		r.answer(out, err)
	}
	return nil
}

// execute executes a command. A campaign that has finished runs again for its items.
func (r *runner) execute(ctx context.Context, c *command) (out api.Appended, err error) {
	n, err := r.executeVerb(ctx, c)
	if err != nil {
		return out, err
	}
	out.Items = n
	if c.verb == board.VerbAppend {
		out.Overwritten, out.Example = len(r.overwritten), brief(redact.Address(r.overwritten.first()))
	}
	more := n > 0 || c.verb == board.VerbAppend && !r.windows.complete // the first new rows may have no items
	if !more || r.rec.Phase != record.PhaseFinished {
		return out, nil
	}
	return out, r.save(ctx, func(c *record.Campaign) {
		if c.Phase == record.PhaseFinished {
			c.Phase, c.Wanted = record.PhaseRunning, record.WantRun
		}
	})
}
