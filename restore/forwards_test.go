package restore_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/restore/operator"
)

// TestApplyBeside: many goroutines apply many operators at the same time, more than an engine keeps and uses; each gets what it gets alone.
func TestApplyBeside(t *testing.T) {
	t.Parallel()
	e := engine(t)
	var group sync.WaitGroup
	for factor := range 20 {
		op, err := operator.Builtin().New(operator.GaussianDeblur, map[string]float64{"std": 0.01 + float64(factor)/400}, rgb(32, 32))
		must(t, err)
		x := make([]float32, 3*32*32)
		noise.Normal(x, noise.Key{uint32(factor)}, noise.Start, 0, 1)
		alone, err := e.Apply(t.Context(), op, x, nil)
		must(t, err)
		for range 5 {
			group.Go(func() {
				y, err := e.Apply(t.Context(), op, x, nil)
				if err == nil && !slices.Equal(y, alone) {
					err = fmt.Errorf("std %g: the images differ", op.Params["std"])
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	group.Wait()
}
