package picture

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"ddiff/internal/restore/job"
	"ddiff/restore/item"
)

// attempts is the largest number of noise levels with which a picture is restored again.
const attempts = 6

// ErrImplausible is the error of a picture none of whose restorations was to be believed.
var ErrImplausible = errors.New("no restoration explains the picture")

// verdict is what became of a picture whose result was doubted.
type verdict struct {
	key   string     // its identity with the run 0
	tried job.Tried  // in vain
	found *job.Doubt // settings without a doubt
	err   error      // none was believed
}

// believed finishes an answered picture. One that is doubted, see [job.Job.Doubt], is restored again with other noise levels, alone, until a result is believed. The settings
// of a picture's first run are those of its other runs, which are neighbours.
func (s *Session) believed(ctx context.Context, p *prepared) Result {
	if s.cfg.Unchecked {
		return s.finish(p)
	}
	whole := p.Item
	whole.Run = 0
	if err := whole.Identify(); err != nil {
		return failed(p, err)
	}
	known := s.verdict.key == whole.ID
	if !known {
		s.verdict = verdict{key: whole.ID}
	}
	var tried job.Tried
	if known {
		if s.verdict.err != nil {
			return failed(p, s.verdict.err)
		}
		if tried = s.verdict.tried; len(tried) > 0 {
			next, err := s.again(ctx, p, s.verdict.found)
			if err != nil {
				return failed(p, err)
			}
			p = next
		}
	}
	for attempt := 0; ; attempt++ {
		doubt := p.Doubt(s.engine, tried)
		if doubt == nil {
			if len(tried) > 0 {
				p.Changed(tried)
				s.verdict.tried, s.verdict.found = tried, &job.Doubt{Sigma: p.Item.Sigma, Std: p.Item.Params["std"]}
			}
			res := s.finish(p)
			res.Doubted = tried.String()
			return res
		}
		tried = append(tried[:len(tried):len(tried)], doubt)
		if known || attempt == attempts || doubt.Std == 0 && doubt.Sigma == p.Item.Sigma || doubt.Raised && doubt.Sigma < p.Item.Sigma {
			err := fmt.Errorf("%w: %v; check %s; --unchecked writes the result as it is", ErrImplausible, tried, p.Causes())
			if !known {
				s.verdict.err = err
			}
			return failed(p, err)
		}
		next, err := s.again(ctx, p, doubt)
		if err != nil {
			return failed(p, err)
		}
		p = next
	}
}

// again restores a picture with the settings of a doubt.
func (s *Session) again(ctx context.Context, p *prepared, doubt *job.Doubt) (*prepared, error) {
	next := &prepared{picture: p.picture, at: p.at}
	t := &next.picture.Task
	t.Sigma, t.Estimated = new(item.Sigma(doubt.Sigma)), p.Item.SigmaEstimated && doubt.Sigma == p.Item.Sigma
	if doubt.Std != 0 {
		t.Params = maps.Clone(p.Item.Params)
		t.Params["std"] = doubt.Std
	}
	t.Tile, t.Overlap = p.Item.Tile, p.Item.Overlap
	if err := s.prepare(ctx, &next.Job, next.picture); err != nil {
		return nil, err
	}
	if err := s.run(ctx, []*prepared{next}); err != nil {
		return nil, err
	}
	next.Seconds += p.Seconds
	return next, nil
}
