package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/redact"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
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

// do asks the leader in the name of the caller of ctx.
func (c *Cluster) do(ctx context.Context, v board.Verb, body, out any) error {
	defer c.memory.wrote()
	return board.Do(ctx, c.cfg.Board, v, body, out)
}

// Submit submits a campaign file. It is idempotent; an archived campaign returns to the board.
func (c *Cluster) Submit(ctx context.Context, file []byte, o api.Order) (out api.Submitted, err error) {
	spec, err := c.parse(file)
	if err != nil {
		return out, err
	}
	if err := checkOutput(board.NewRecord(spec, o, c.cfg.Now())); err != nil {
		return out, fmt.Errorf("submit campaign: %w: %w", board.ErrRefused, err)
	}
	err = c.do(ctx, board.Verb{Kind: board.VerbSubmit}, board.Submission{Spec: spec, Order: o}, &out)
	out.Warning = cmp.Or(out.Warning, c.cfg.Catalogue.EqualRuns(spec))
	return out, err
}

// checkOutput returns an error for an output with which a coordinator would reject the campaign, which keeps it.
func checkOutput(r *record.Campaign) error {
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
		r := board.NewRecord(spec, o, c.cfg.Now())
		out.ID = r.ID
		if err = r.Validate(); err == nil {
			err = checkOutput(r)
		}
	}
	if err != nil {
		for _, f := range board.FieldErrors(err) {
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

// Want sets the wanted state of a campaign.
func (c *Cluster) Want(ctx context.Context, id string, w record.Wanted) (out api.Controlled, err error) {
	err = c.do(ctx, board.Verb{Kind: string(w), Campaign: id}, nil, &out)
	return out, err
}

// Change changes settings of a campaign.
func (c *Cluster) Change(ctx context.Context, id string, change api.Change) (out api.Change, err error) {
	err = c.do(ctx, board.Verb{Kind: board.VerbChange, Campaign: id}, change, &out)
	return out, err
}

// Delete deletes a campaign that has ended. The leader may need longer than it takes to answer: then the verb is sent again.
func (c *Cluster) Delete(ctx context.Context, id string, results, dry bool) (out api.Deleted, err error) {
	v := board.Verb{Key: board.NewKey(), Kind: board.VerbDelete, Campaign: id}
	for {
		err = c.do(ctx, v, board.Deletion{Results: results, Dry: dry}, &out)
		if !errors.Is(err, queue.ErrUnavailable) || ctx.Err() != nil {
			return out, err
		}
	}
}

// Retry publishes items again, and waits for the coordinator's answer until ctx ends.
func (c *Cluster) Retry(ctx context.Context, id, key string, r api.Retry) (api.Retried, error) {
	v, command := board.Verb{Key: key, Kind: board.VerbRetry, Campaign: id}, board.Command{Outcomes: r.Outcomes, Where: r.Where}
	switch {
	case r.Missing && (len(r.Outcomes) > 0 || r.Where != "" || len(r.Items) > 0):
		return api.Retried{}, api.NewError(api.ErrInvalid, "retry: missing publishes all items without a result; leave the other conditions away")
	case r.Missing:
		v.Kind = board.VerbReconcile
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
	var out api.Appended
	err := c.do(ctx, v, command, &out)
	return api.Retried{Published: out.Items}, err
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
	var out api.Appended
	err := c.do(ctx, board.Verb{Key: key, Kind: board.VerbAppend, Campaign: id}, board.Command{Path: a.Path}, &out)
	return out, err
}
