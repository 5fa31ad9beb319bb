package solver

import (
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
)

// undivided returns a solver of n images of odd parts, each larger than two parts of drawing, that is not compiled.
func undivided(t *testing.T, n int) (s *Solver, size int) {
	t.Helper()
	m := inner{}
	op := newOperator(t, operator.Denoise, operator.Shape{Channels: 3, Height: 152, Width: 200})
	run := planRun(t, m, method.Settings{Method: m.Info().Name, Steps: 3}, bundled(t), op)
	size = infer.Size(run.SpaceDims(1))
	if size <= 2*drawPart || size%drawPart == 0 {
		t.Fatalf("%d deviates of an image are no odd parts", size)
	}
	return newStream(onnxtest.Runtime(t), run, n, Build{}), size
}

// TestDrawInParts: the noise of an image and iteration does not depend on the parts, the batch and the place in it.
func TestDrawInParts(t *testing.T) {
	t.Parallel()
	s, size := undivided(t, 3)
	probs := []Problem{{Key: noise.Key{1, 2, 3}}, {Key: noise.Key{4, 5, 6}}} // the third place is empty
	for d, draw := range s.run.Info.Draws {
		buf := slices.Repeat([]float32{7}, infer.Size(s.run.DrawDims(d, s.n)))
		s.drawStep(buf, d, probs, 1)
		st, want := s.run.Steps[1], make([]float32, size)
		for j := range len(buf) / size {
			if clear(want); j%3 < len(probs) {
				noise.Normal(want, probs[j%3].Key, noise.Step.Iteration(j/3), uint32(d<<drawShift|st.Time), st.Std[draw.Name])
			}
			if !slices.Equal(buf[j*size:][:size], want) {
				t.Errorf("draw %s, iteration %d, place %d: wrong noise", draw.Name, j/3+1, j%3+1)
			}
		}
	}
}

// TestAheadEnds: drawing is joined before the first step, after a later one, and after the last, behind which nothing is drawn.
func TestAheadEnds(t *testing.T) {
	s, _ := undivided(t, 2)
	for i := range s.draws {
		for d := range s.run.Info.Draws {
			noise, err := onnxruntime.NewTensor(onnx.Float, s.run.DrawDims(d, s.n)...)
			must(t, err)
			s.draws[i] = append(s.draws[i], noise)
		}
	}
	before := goleak.IgnoreCurrent()
	for taken := range len(s.run.Steps) + 1 {
		p := batchPart{solver: s, problems: []Problem{{}, {Key: noise.Key{1}}}, drawing: &sync.WaitGroup{}}
		for at := range taken + 1 {
			p.drawAhead(at)
			p.drawing.Wait()
		}
		goleak.VerifyNone(t, before)
	}
}
