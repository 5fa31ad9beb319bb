package picture

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"ddiff/restore/item"
	"ddiff/restore/job"
)

// attempts is the largest number of noise levels with which a picture is restored again.
const attempts = 6

// ErrImplausible is the error of a picture none of whose restorations was to be believed.
var ErrImplausible = errors.New("no restoration explains the picture")

// believed finishes a solved picture. One that is doubted, see [job.Job.Doubt], is restored again with other noise levels, alone, until a result is believed.
func (s *Session) believed(ctx context.Context, p *prepared, res item.Result) Result {
	stated := p.Item
	var first, last *job.Doubt
	for attempt := 0; ; attempt++ {
		m, err := p.Score()
		if err != nil {
			return failed(p, err)
		}
		var doubt *job.Doubt
		if !s.cfg.Unchecked {
			doubt = p.Doubt(s.engine, m, last)
		}
		if doubt == nil {
			if first != nil {
				p.Changed(&stated, first)
			}
			return s.finish(p, m, res)
		}
		if first == nil {
			first = doubt
		}
		last = doubt
		if attempt == attempts || doubt.Std == 0 && doubt.Sigma == p.Item.Sigma || doubt.Raised && doubt.Sigma < p.Item.Sigma {
			tried := ""
			if p.Item.Sigma != stated.Sigma {
				tried = fmt.Sprintf(", and no other sigma, the last %.3g, helped", p.Item.Sigma)
			}
			return failed(p, fmt.Errorf("%w: %s%s; check the task and the width of its blur, kernel or mask; --unchecked writes the result as it is", ErrImplausible, first.Text, tried))
		}
		next := &prepared{picture: p.picture, at: p.at}
		next.picture.Sigma, next.picture.Estimate = doubt.Sigma, p.Item.SigmaEstimated && doubt.Sigma == p.Item.Sigma
		if doubt.Std != 0 {
			next.picture.Params = maps.Clone(p.Item.Params)
			next.picture.Params["std"] = doubt.Std
		}
		next.picture.Tile, next.picture.Overlap = p.Item.Tile, p.Item.Overlap
		begin := time.Now()
		if err := s.prepare(ctx, &next.Job, next.picture); err != nil {
			return failed(p, err)
		}
		cost, err := s.run(ctx, []*prepared{next})
		if err != nil {
			return failed(p, err)
		}
		res.Seconds, res.Batch, res.Cost = res.Seconds+time.Since(begin).Seconds(), 1, item.Cost(cost)
		p = next
	}
}
