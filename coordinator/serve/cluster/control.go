package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"ddiff/api"
	"ddiff/coordinator/archive"
	"ddiff/coordinator/board"
	"ddiff/coordinator/gc"
	"ddiff/coordinator/index"
	"ddiff/coordinator/serve"
	"ddiff/internal/redact"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/item"
	"ddiff/storage"
)

const (
	// recallLimit is how long a submission waits for a coordinator to look into the archive. Without an answer the coordinator that
	// starts the campaign looks.
	recallLimit = 5 * time.Second
	// storeLimit is how long Want waits for a coordinator to store the request.
	storeLimit = 5 * time.Second
)

// maxWhere is the largest part of a reason that selects items of a retry, in bytes.
const maxWhere = 1000

// nowhere is the base of relative paths, which a campaign from another machine must not have.
const nowhere = "/a relative path"

// fileName is what errors call the campaign file of a request. A file without a name gets its name from it.
const fileName = "campaign"

func (c *Cluster) parse(file []byte) (*manifest.Spec, error) {
	known := c.cfg.Catalogue
	known.New = true
	spec, err := manifest.Parse(fileName, file, nowhere)
	if err != nil {
		return nil, spec.Problems(err, known)
	}
	paths := map[string]string{
		"dataset.path": spec.Dataset.Path, "dataset.mask": spec.Dataset.Mask, "dataset.kernel": spec.Dataset.Kernel, "prior": spec.Prior,
	}
	for i, t := range spec.Tasks {
		for name, path := range map[string]string{"operator": t.Operator, "mask": t.Mask, "kernel": t.Kernel} {
			paths[fmt.Sprintf("tasks[%d].%s", i, name)] = path
		}
	}
	var problems []error
	for field, path := range paths {
		if relative, err := filepath.Rel(nowhere, path); err == nil && !strings.HasPrefix(relative, "..") || strings.Contains(path, nowhere) {
			problems = append(problems, &manifest.FieldError{
				File: fileName, Field: field, Err: errors.New("is a relative path; give an absolute path of the coordinators' machines, or an address"),
			})
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	err = spec.Validate(known)
	return spec, err
}

// Submit submits a campaign file. It is idempotent; an archived campaign returns to the board.
func (c *Cluster) Submit(ctx context.Context, file []byte, o api.Order) (api.Submitted, error) {
	spec, err := c.parse(file)
	if err != nil {
		return api.Submitted{}, err
	}
	if err := checkOutput(board.NewRecord(spec, o, c.cfg.Now())); err != nil {
		return api.Submitted{}, fmt.Errorf("submit campaign: %w: %w", board.ErrRefused, err)
	}
	limited, cancel := context.WithTimeout(ctx, recallLimit)
	defer cancel()
	err = archive.Recall(limited, c.cfg.Board, spec.ID())
	switch {
	case ctx.Err() != nil:
		return api.Submitted{}, ctx.Err()
	case errors.Is(err, queue.ErrNoRecord), errors.Is(err, archive.ErrNoLeader), limited.Err() != nil:
		err = c.claim(ctx, o.Owner)
	}
	if err != nil {
		return api.Submitted{}, err
	}
	record, created, err := board.Submit(ctx, c.cfg.Board, spec, o, c.cfg.Now())
	if err != nil {
		return api.Submitted{}, err
	}
	c.memory.wrote()
	return api.Submitted{
		ID: record.ID, Created: created, Phase: record.Phase, Wanted: record.Wanted, Output: record.Output, Recalled: record.Recalled,
	}, nil
}

// checkOutput returns an error for an output with which a coordinator would reject the campaign, which keeps it.
func checkOutput(r *manifest.Campaign) error {
	err := r.CheckOutput()
	if e := storage.CheckKey(strings.TrimSuffix(r.Output, "/")); err == nil && e != nil {
		err = fmt.Errorf("output: %v", e) //nolint:errorlint // storage.ErrBadKey answers that there is no such file
	}
	if err != nil {
		err = fmt.Errorf("%w; give another folder below the cluster's store", err)
	}
	return err
}

const (
	// countLimit and countRows limit the time and the rows of a dataset that a check counts.
	countLimit = 5 * time.Second
	countRows  = 100_000
	// countParallel is the number of datasets that are counted at once.
	countParallel = 4
)

// Check reports what is wrong with a campaign file, and counts the rows and items of a right one.
func (c *Cluster) Check(ctx context.Context, file []byte, o api.Order) (api.Checked, error) {
	out := api.Checked{Problems: []api.Problem{}}
	spec, err := c.parse(file)
	if err == nil {
		out.ID = spec.ID()
		r := board.NewRecord(spec, o, c.cfg.Now())
		if err = r.Validate(); err == nil {
			err = checkOutput(r)
		}
	}
	if err != nil {
		for _, f := range serve.FieldErrors(err) {
			out.Problems = append(out.Problems, api.Problem{Field: f.Field, Line: f.Line, Message: f.Err.Error()})
		}
		if len(out.Problems) == 0 {
			out.Problems = append(out.Problems, api.Problem{Message: err.Error()})
		}
		return out, nil
	}
	if c.cfg.Rows == nil {
		return out, nil
	}
	limited, cancel := context.WithTimeout(ctx, countLimit)
	defer cancel()
	if c.counts.Acquire(limited, 1) != nil { // others count for longer
		out.More = true
		return out, ctx.Err()
	}
	defer c.counts.Release(1)
	rows, items := 0, 0
	for row, err := range c.cfg.Rows(limited, spec.Dataset, nil) {
		if limited.Err() != nil || rows == countRows {
			out.More = true
			break
		}
		if err != nil {
			out.Problems = append(out.Problems, api.Problem{Field: "dataset.path", Message: err.Error()})
			return out, ctx.Err()
		}
		rows, items = rows+1, items+manifest.ItemsPerRow(row, spec)
	}
	out.Rows, out.Items = &rows, &items
	return out, ctx.Err()
}

// Owner returns the owner of a campaign, without a return from the archive.
func (c *Cluster) Owner(ctx context.Context, id string) (owner string, err error) {
	err = c.missed.Look(ctx, func() error {
		record, err := recordOf(ctx, c.cfg, id)
		if err == nil {
			owner = record.Owner
		} else if errors.Is(err, queue.ErrNoRecord) {
			if owner, err = index.New(c.cfg.Store).DeletingOwner(ctx, id); errors.Is(err, storage.ErrNotFound) {
				err = queue.ErrNoRecord
			}
		}
		return err
	})
	return owner, unknown(id, err)
}

// Want sets the wanted state of a campaign, and waits up to storeLimit for a coordinator to store it.
func (c *Cluster) Want(ctx context.Context, id string, w manifest.Wanted) (api.Controlled, error) {
	var record *manifest.Campaign
	err := c.change(ctx, id, func() (err error) {
		record, err = board.Want(ctx, c.cfg.Board, id, w)
		return err
	})
	if err != nil {
		return api.Controlled{}, err
	}
	limited, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	record, err = board.AwaitStored(limited, c.cfg.Board, record)
	c.memory.wrote()
	out := api.Controlled{ID: id, Phase: record.Phase, Wanted: record.Wanted, Stored: err == nil}
	if record.Phase == manifest.PhasePaused && record.Wanted == manifest.WantRun {
		out.Reason = record.Reason
	}
	if limited.Err() != nil && ctx.Err() == nil {
		return out, nil
	}
	return out, err
}

// SetBudget replaces the budget of a campaign.
func (c *Cluster) SetBudget(ctx context.Context, id string, b manifest.Budget) (manifest.Budget, error) {
	var record *manifest.Campaign
	err := c.change(ctx, id, func() (err error) {
		record, err = board.SetBudget(ctx, c.cfg.Board, id, b)
		return err
	})
	if err != nil {
		return manifest.Budget{}, err
	}
	limited, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	record, err = board.AwaitStored(limited, c.cfg.Board, record)
	c.memory.wrote()
	noLeader := limited.Err() != nil && ctx.Err() == nil
	if noLeader || errors.Is(err, board.ErrRefused) || errors.Is(err, board.ErrReplaced) { // the budget may pause the campaign
		err = nil
	}
	return record.Spec.Budget, err
}

// Delete deletes a campaign that has ended.
func (c *Cluster) Delete(ctx context.Context, id string, results, dry bool) (api.Deleted, error) {
	err := board.CheckStore(ctx, c.cfg.Board, c.cfg.Store) // another cluster may have taken it over just now
	var removed []api.Removal
	if err == nil {
		removed, err = (&gc.Cleaner{Store: c.cfg.Store, Board: c.cfg.Board, DryRun: dry, Now: c.cfg.Now}).Delete(ctx, id, results)
		c.memory.wrote()
	}
	if errors.Is(err, gc.ErrNoIndex) || errors.Is(err, board.ErrOtherCluster) {
		err = api.NewError(api.ErrRefused, err.Error())
	}
	return api.NewDeleted(removed, !dry), unknown(id, err)
}

// Retry publishes items again, and waits for the coordinator's answer until ctx ends.
func (c *Cluster) Retry(ctx context.Context, id, key string, r api.Retry) (api.Retried, error) {
	command := manifest.Command{ID: key, Verb: manifest.CommandRetry, Outcomes: r.Outcomes, Where: r.Where}
	switch {
	case r.Missing && (len(r.Outcomes) > 0 || r.Where != "" || len(r.Items) > 0):
		return api.Retried{}, api.NewError(api.ErrInvalid, "retry: missing publishes all items without a result; leave the other conditions away")
	case r.Missing:
		command.Verb = manifest.CommandReconcile
	case len(r.Items) > 0 && (len(r.Outcomes) > 0 || r.Where != ""):
		return api.Retried{}, api.NewError(api.ErrInvalid, "retry: items names failed or dead items; leave outcomes and where away")
	case len(r.Where) > maxWhere || strings.ContainsFunc(r.Where, unicode.IsControl) || r.Where != "" && strings.TrimSpace(r.Where) == "":
		return api.Retried{}, api.NewError(api.ErrInvalid, fmt.Sprintf("retry: where is no text of a reason; give a part of one line, of at most %d bytes", maxWhere))
	case slices.Contains(r.Items, ""): // begins all ids
		return api.Retried{}, api.NewError(api.ErrInvalid, "retry: an item is empty; give an id or the beginning of an id, or outcomes for all items")
	case len(r.Items) > 0:
		command.Outcomes, command.Items = []item.Outcome{item.OutcomeFailed, item.OutcomeDead}, r.Items
	case len(r.Outcomes) == 0:
		return api.Retried{}, api.NewError(api.ErrInvalid, "retry: no items selected; give outcomes, items or missing")
	}
	var a manifest.Answer
	err := c.change(ctx, id, func() (err error) {
		a, err = board.Command(ctx, c.cfg.Board, id, command)
		return err
	})
	c.memory.wrote()
	return api.Retried{Published: a.Items}, err
}

// Append adds rows, and waits for the coordinator's answer until ctx ends.
func (c *Cluster) Append(ctx context.Context, id, key string, a api.Append) (api.Appended, error) {
	switch {
	case redact.Credentials(a.Path):
		return api.Appended{}, api.NewError(api.ErrInvalid, "append: the address contains credentials; set them in the environment of the coordinators")
	case strings.ContainsFunc(a.Path, unicode.IsControl):
		return api.Appended{}, api.NewError(api.ErrInvalid, "append: the path has control characters; remove them")
	case a.Path != "" && !filepath.IsAbs(a.Path) && !manifest.IsAddress(a.Path):
		return api.Appended{}, api.NewError(api.ErrInvalid, "append: the path is relative; give an absolute path of the coordinators' machines, or an address")
	}
	var answer manifest.Answer
	err := c.change(ctx, id, func() (err error) {
		answer, err = board.Command(ctx, c.cfg.Board, id, manifest.Command{ID: key, Verb: manifest.CommandAppend, Path: a.Path})
		return err
	})
	c.memory.wrote()
	return api.Appended{Items: answer.Items}, err
}
