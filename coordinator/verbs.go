package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"ddiff/api"
	"ddiff/internal/coordinator/archive"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/gc"
	"ddiff/internal/coordinator/index"
	"ddiff/internal/record"
	"ddiff/internal/retry"
	"ddiff/storage"
)

const (
	// answerLimit is how long a request waits for the answer to its verb, before the door sends it again: its attempts are that long.
	answerLimit = 4 * time.Second
	// verbLimit is the time for a verb other than a deletion.
	verbLimit = 30 * time.Second
	// resumeLimit is how long the answer to a resumption waits for the campaign: a limit may pause it at once, which is then the answer.
	resumeLimit = time.Second
	// verbPause is the pause before something is looked at again.
	verbPause = 10 * time.Millisecond
	// maxClip is the number of bytes of a text of a person in the log.
	maxClip = 200
)

// answer executes a verb and returns what Do of package board reads. A repetition joins the verb that is being executed, or gets the answer of one that has ended. It returns nil, so that the
// verb is sent again, to a later leader too, if the answer takes longer, or this leader is about to end.
func (s *Service) answer(ctx context.Context, data []byte) []byte {
	var v board.Verb
	if json.Unmarshal(data, &v) != nil || v.Key == "" {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	return s.answers.get(waiting, v.Key, s.cfg.Now, func() ([]byte, bool) { return s.answerTo(ctx, &v) })
}

func (s *Service) answerTo(ctx context.Context, v *board.Verb) (data []byte, stays bool) {
	limited, cancel := context.WithCancel(ctx)
	if v.Kind != board.VerbDelete {
		limited, cancel = context.WithTimeout(ctx, verbLimit)
	}
	defer cancel()
	var out board.Answer
	body, err := s.do(limited, v)
	if err == nil && body != nil {
		out.Body, err = json.Marshal(body)
	}
	if ctx.Err() != nil {
		return nil, false // the next leader answers
	}
	if err != nil {
		if out.Problem = board.Problem(err); errors.Is(out.Problem, api.ErrUnexpected) {
			s.cfg.Logger.Error("could not execute a verb", "verb", clip(v.Kind), "campaign", clip(v.Campaign), "reason", err)
		}
	}
	if data, err = json.Marshal(out); err != nil {
		return nil, false
	}
	return data, out.Problem == nil || out.Problem.Status < http.StatusInternalServerError
}

// do executes a verb.
func (s *Service) do(ctx context.Context, v *board.Verb) (any, error) {
	least := api.Submitter
	if v.Kind == board.VerbCreateToken || v.Kind == board.VerbRevokeToken {
		least = api.Admin
	}
	if slices.Index(api.Roles(), v.By.Role) < slices.Index(api.Roles(), least) {
		return nil, api.NewError(api.ErrDenied, "this needs the role "+string(least))
	}
	switch v.Kind {
	case string(record.WantRun), string(record.WantPause), string(record.WantCancel), string(record.WantCancelNow):
		return s.want(ctx, v)
	case board.VerbChange:
		var body api.Change
		if err := decodeBody(v, &body); err != nil {
			return nil, err
		}
		if err := board.CheckPriority(body.Priority, v.By.Role); err != nil {
			return nil, err
		}
		c, err := s.change(ctx, v, board.Changes(body))
		if err != nil {
			return nil, err
		}
		return board.SettingsOf(c), nil
	case board.VerbRetry, board.VerbReconcile, board.VerbAppend:
		return s.command(ctx, v)
	case board.VerbSubmit:
		return s.submit(ctx, v)
	case board.VerbDelete:
		return s.delete(ctx, v)
	case board.VerbCreateToken:
		return s.createToken(ctx, v)
	case board.VerbRevokeToken:
		return s.revokeToken(ctx, v)
	}
	return nil, fmt.Errorf("%w: unknown verb %q; use one version of ddiff everywhere", board.ErrRefused, clip(v.Kind))
}

func decodeBody(v *board.Verb, out any) error {
	if err := json.Unmarshal(v.Body, out); err != nil {
		return fmt.Errorf("%w: %s: the body: %w", board.ErrRefused, clip(v.Kind), err)
	}
	return nil
}

// audit logs who has asked for what.
func (s *Service) audit(v *board.Verb, attributes ...any) {
	s.cfg.Logger.Info("audit", append([]any{"request", clip(v.By.Request), "verb", clip(v.Kind), "by", clip(v.By.Name)}, attributes...)...)
}

// clip shortens a text of a person.
func clip(text string) string { return text[:min(len(text), maxClip)] }

// may returns an error unless the caller may change a campaign.
func may(v *board.Verb, owner string) error {
	if v.By.Role == api.Admin || v.By.Owner == owner {
		return nil
	}
	return api.NewError(api.ErrDenied, "campaign "+v.Campaign+" belongs to another owner; this needs the role "+string(api.Admin))
}

// open calls act with the record of the campaign of a verb, which comes back from the archive, if the caller may change it.
func (s *Service) open(ctx context.Context, v *board.Verb, act func(c *record.Campaign) error) error {
	err := s.archive.Recall(ctx, v.Campaign, func(c *record.Campaign) error { return may(v, c.Owner) }, act)
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrBadKey):
		return unknown(v.Campaign)
	case errors.Is(err, index.ErrDeleting), errors.Is(err, board.ErrDamaged):
		return fmt.Errorf("%w: %w", board.ErrRefused, err)
	}
	return err
}

func unknown(id string) error {
	return api.NewError(api.ErrNotFound, fmt.Sprintf("unknown campaign %s; see: ddiff list --all", clip(id)))
}

// change changes the record of a campaign in the name of a person.
func (s *Service) change(ctx context.Context, v *board.Verb, f func(c *record.Campaign) error) (c *record.Campaign, err error) {
	err = s.open(ctx, v, func(before *record.Campaign) (err error) {
		number := 0 // of the record that f has changed, or left as it is
		c, err = s.writer.Change(ctx, v.Campaign, before, func(c *record.Campaign) error {
			number = c.Number
			return f(c)
		})
		if err == nil && c.Number > number {
			s.audit(v, "campaign", v.Campaign)
		}
		return err
	})
	if errors.Is(err, board.ErrRefused) {
		err = fmt.Errorf("%s campaign %s: %w", v.Kind, v.Campaign, err)
	}
	if err != nil {
		return nil, err
	}
	s.all.deliver(c)
	return c, nil
}

// want sets the wanted state of a campaign.
func (s *Service) want(ctx context.Context, v *board.Verb) (any, error) {
	c, err := s.change(ctx, v, board.Wants(record.Wanted(v.Kind)))
	if err != nil {
		return nil, err
	}
	if c.Wanted == record.WantRun {
		if c, err = s.awaitResumed(ctx, c); err != nil {
			return nil, err
		}
	}
	out := api.Controlled{ID: c.ID, Phase: c.Phase, Wanted: c.Wanted}
	if c.Phase == record.PhasePaused && c.Wanted == record.WantRun {
		out.Reason = c.Reason
	}
	return out, nil
}

// awaitResumed waits, not for long, for what the runner makes of a resumption. It returns ErrRefused if a limit has paused the campaign again.
func (s *Service) awaitResumed(ctx context.Context, c *record.Campaign) (*record.Campaign, error) {
	if c.Phase != record.PhasePaused || c.Reason != "" {
		return c, nil
	}
	for end := time.Now().Add(resumeLimit); s.writer.Number(c.ID) == c.Number && time.Now().Before(end); {
		if err := retry.Sleep(ctx, verbPause); err != nil {
			return nil, err
		}
	}
	now, err := board.Read(ctx, s.cfg.Board, c.ID)
	if err != nil || !now.Submitted.Equal(c.Submitted) {
		return c, nil //nolint:nilerr // the resumption is stored
	}
	if now.Wanted == record.WantPause && now.Reason != "" {
		return nil, fmt.Errorf("%s campaign %s: %w: %s", record.WantRun, c.ID, board.ErrRefused, now.Reason)
	}
	return now, nil
}

// command gives a command to the runner of a campaign, and returns its answer.
func (s *Service) command(ctx context.Context, v *board.Verb) (any, error) {
	var body board.Command
	if err := decodeBody(v, &body); err != nil {
		return nil, err
	}
	var asked *command
	err := s.open(ctx, v, func(c *record.Campaign) error {
		asked = s.all.ask(c, v.Key, v.Kind, body)
		return nil
	})
	if err != nil {
		return nil, err
	}
	out, err := asked.await(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = api.NewError(api.ErrUnavailable, "the coordinator still opens campaign "+v.Campaign+" or reads its dataset, and then executes the command; repeat it to wait for a coordinator's answer")
	}
	if err != nil {
		return nil, err
	}
	s.audit(v, "campaign", v.Campaign, "items", out.Items)
	return out, nil
}

// submit submits a campaign. It is idempotent.
func (s *Service) submit(ctx context.Context, v *board.Verb) (any, error) {
	var body board.Submission
	if err := decodeBody(v, &body); err != nil {
		return nil, err
	}
	if body.Spec == nil {
		return nil, fmt.Errorf("%w: submit: there is no campaign", board.ErrRefused)
	}
	body.Order.Owner = v.By.Owner
	c := board.NewRecord(body.Spec, body.Order, s.cfg.Now())
	err := c.Validate()
	if err == nil {
		err = c.CheckOutput()
	}
	if err != nil {
		return nil, fmt.Errorf("submit campaign: %w: %w", board.ErrRefused, err)
	}
	if owner := c.Owner; owner != "" && s.all.owned(owner) >= s.cfg.Campaigns {
		if _, err := board.Load(ctx, s.cfg.Store, c.ID); errors.Is(err, storage.ErrNotFound) {
			return nil, api.NewError(api.ErrRefused, fmt.Sprintf("%s has %d campaigns on the board, the most for an owner; delete some that have ended, or wait until they "+
				"are archived; an operator can raise the limit with ddiff coordinator --max-campaigns", owner, s.all.owned(owner)))
		}
	}
	now, created, back, err := s.archive.Submit(ctx, c)
	if errors.Is(err, index.ErrDeleting) || errors.Is(err, board.ErrDamaged) {
		err = fmt.Errorf("%w: %w", board.ErrRefused, err)
	}
	if err == nil && !created {
		err = board.CheckSame(now, body.Spec, body.Order)
	}
	if err != nil {
		return nil, err
	}
	s.all.deliver(now)
	s.audit(v, "campaign", now.ID, "created", created)
	return api.Submitted{
		ID: now.ID, Created: created, Phase: now.Phase, Wanted: now.Wanted, Output: now.Output, Recalled: back, Warning: board.Kept(now, body.Spec, body.Order),
	}, nil
}

// delete deletes a campaign that has ended, or completes its deletion.
func (s *Service) delete(ctx context.Context, v *board.Verb) (any, error) {
	var body board.Deletion
	if err := decodeBody(v, &body); err != nil {
		return nil, err
	}
	if err := s.mayDelete(ctx, v); err != nil {
		return nil, err
	}
	if err := board.CheckStore(ctx, s.cfg.Board, s.cfg.Store); err != nil { // another cluster may have taken it over just now
		return nil, err
	}
	cleaner := &gc.Cleaner{Store: s.cfg.Store, Board: s.cfg.Board, Archive: s.archiveEnded, DryRun: body.Dry, Now: s.cfg.Now}
	removed, err := cleaner.Delete(ctx, v.Campaign, body.Results)
	if errors.Is(err, gc.ErrNoIndex) {
		err = fmt.Errorf("%w: %w", board.ErrRefused, err)
	}
	if err != nil {
		return nil, err
	}
	if !body.Dry {
		s.audit(v, "campaign", v.Campaign, "results", body.Results)
		s.writer.Forget(v.Campaign)
	}
	return api.NewDeleted(removed, !body.Dry), nil
}

// archiveEnded archives a campaign once its runner has ended.
func (s *Service) archiveEnded(ctx context.Context, id string) error {
	for {
		err := s.archive.Archive(ctx, id)
		if !errors.Is(err, archive.ErrBusy) || retry.Sleep(ctx, verbPause) != nil {
			return err
		}
	}
}

// mayDelete returns an error unless the caller may delete a campaign: also one whose interrupted deletion has lost its record.
func (s *Service) mayDelete(ctx context.Context, v *board.Verb) error {
	c, err := board.Load(ctx, s.cfg.Store, v.Campaign)
	if err == nil {
		return may(v, c.Owner)
	}
	owner := ""
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrBadKey) {
		owner, err = index.New(s.cfg.Store).DeletingOwner(ctx, v.Campaign)
	}
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return unknown(v.Campaign)
	case err != nil:
		return err
	}
	return may(v, owner)
}
