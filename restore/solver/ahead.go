package solver

import (
	"context"
	"sync"

	"ddiff/internal/lifecycle"
	"ddiff/restore/noise"
	"ddiff/restore/onnx/infer"
)

// ahead draws the noise of the next step while the device works on the present one.
type ahead struct {
	ready   chan struct{}
	service *lifecycle.Service
}

// drawAhead starts drawing at a step. The caller must call stop. The end of ctx does not stop it: next always returns.
func (s *Solver) drawAhead(ctx context.Context, problems []Problem, first int) *ahead {
	a := &ahead{ready: make(chan struct{})}
	a.service = lifecycle.Go(context.WithoutCancel(ctx), func(ctx context.Context) error {
		for at := first; at < len(s.run.Steps); at++ {
			for d, t := range s.draws[at%2] {
				s.drawStep(t.F32, d, problems, at)
			}
			select {
			case a.ready <- struct{}{}:
			case <-ctx.Done():
				return nil
			}
		}
		return nil
	})
	return a
}

// next waits for the noise of the next step, which is in Solver.draws until the following call.
func (a *ahead) next() { <-a.ready }

// stop joins the goroutine that draws.
func (a *ahead) stop() { a.service.Stop() }

// drawShift is the position of a draw's number in the step of its noise key, above the time index.
const drawShift = 20

// drawPart is the number of deviates that a goroutine draws, a multiple of 4: some 0.1 ms.
const drawPart = 1 << 15

// drawStep fills [N, draw], or [count, N, draw] for a draw with a count, with the scaled noise of one draw, and with zeros
// where the step adds none. All threads of the process draw: a deviate depends on its position only.
func (s *Solver) drawStep(buf []float32, draw int, problems []Problem, at int) {
	name, size, st := s.run.Info.Draws[draw].Name, infer.Size(s.run.SpaceDims(1)), s.run.Steps[at]
	var group sync.WaitGroup
	for j := range len(buf) / size {
		iteration, i := j/s.n, j%s.n
		dst := buf[j*size:][:size]
		if st.Std[name] == 0 || i >= len(problems) {
			clear(dst)
			continue
		}
		for from := 0; from < size; from += drawPart {
			group.Go(func() {
				noise.NormalFrom(dst[from:min(size, from+drawPart)], from, problems[i].Key,
					noise.Step.Iteration(iteration), uint32(draw<<drawShift|st.Time), st.Std[name])
			})
		}
	}
	group.Wait()
}
