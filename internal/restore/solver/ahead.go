package solver

import (
	"sync"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/infer"
)

// drawAhead starts to draw the noise of a step into Solver.draws, while the device works on the step before.
func (p *batchPart) drawAhead(at int) {
	if at == len(p.solver.run.Steps) {
		return
	}
	p.drawing.Go(func() {
		for d, t := range p.solver.draws[at%2] {
			p.solver.drawStep(t.F32, d, p.problems, at)
		}
	})
}

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
