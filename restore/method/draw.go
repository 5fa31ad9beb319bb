package method

import (
	"fmt"

	"ddiff/restore/noise"
)

// Draw is a noise tensor of a step, in the shape [N, C, H, W] of the prior's space. Its numbers are independent of those of
// other draws, steps and images.
type Draw struct {
	Name string
	// Count returns the number of tensors for the settings, at least 1: one for each inner iteration of a step. The draw
	// then has the shape [Count, N, C, H, W]; see [Builder.Repeat] and [Builder.DrawAt]. nil: one tensor, without the
	// leading dimension; see [Builder.Draw].
	Count func(s Settings) int
}

// counts returns the number of tensors of each draw, 0 for a draw without Count.
func (i Info) counts(s Settings) ([]int, error) {
	out := make([]int, len(i.Draws))
	for k, d := range i.Draws {
		if d.Count == nil {
			continue
		}
		if out[k] = d.Count(s); out[k] < 1 || out[k] > noise.MaxIterations {
			return nil, fmt.Errorf("method %s: draw %q has a count of %d, want 1 to %d", i.Name, d.Name, out[k], noise.MaxIterations)
		}
	}
	return out, nil
}

// InnerDraws returns the number of noise tensors of draws with [Draw.Count] in one step of an image. The error
// names a count that is out of range.
func (i Info) InnerDraws(s Settings) (int, error) {
	counts, err := i.counts(s)
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum, err
}
