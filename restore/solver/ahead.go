package solver

import "ddiff/restore/noise"

// ahead draws the noise of the next chunk while the device works on the present one.
type ahead struct {
	ready chan []float32
	done  chan struct{}
}

// drawAhead starts drawing at a step.
func (s *Solver) drawAhead(problems []Problem, first int) *ahead {
	a := &ahead{ready: make(chan []float32), done: make(chan struct{})}
	size := s.k * s.n * s.op.Image.Size()
	buffers := [2][]float32{make([]float32, size), make([]float32, size)}
	go func() {
		for chunk, at := 0, first; at < len(s.steps); chunk, at = chunk+1, at+s.k {
			buf := buffers[chunk%2]
			s.drawChunk(buf, problems, at)
			select {
			case a.ready <- buf:
			case <-a.done:
				return
			}
		}
	}()
	return a
}

// next waits for the noise of the next chunk. The buffer stays valid until the call after.
func (a *ahead) next() []float32 { return <-a.ready }

func (a *ahead) stop() { close(a.done) }

// drawChunk fills [K, N, C, H, W] with σ_t·ε; zero where no noise is added.
func (s *Solver) drawChunk(buf []float32, problems []Problem, at int) {
	m := s.op.Image.Size()
	for j := range min(s.k, len(s.steps)-at) {
		st := s.steps[at+j]
		for i := range s.n {
			dst := buf[(j*s.n+i)*m : (j*s.n+i+1)*m]
			if st.noiseStd == 0 || i >= len(problems) {
				clear(dst)
				continue
			}
			noise.Normal(dst, problems[i].Key, noise.Step, uint32(st.t), st.noiseStd)
		}
	}
}
