package linear_test

import (
	"math"
	"testing"

	"ddiff/restore/operator"
	"ddiff/restore/prior"
	"ddiff/restore/prior/linear"
)

// The encoder is the left inverse of the decoder, whose columns have the length scale and are orthogonal.
func TestStage(t *testing.T) {
	t.Parallel()
	const scale = 1.5
	s := linear.New(operator.Shape{Channels: 1, Height: 8, Width: 8}, operator.Shape{Channels: 2, Height: 4, Width: 4}, scale)
	d := s.Latent.Size()
	for i := range d {
		for j := range d {
			inverse, gram := 0.0, 0.0
			for k, row := range s.Decode {
				inverse += s.Encode[i][k] * row[j]
				gram += row[i] * row[j]
			}
			want := 0.0
			if i == j {
				want = 1
			}
			if !(math.Abs(inverse-want) <= 1e-9) || !(math.Abs(gram-want*scale*scale) <= 1e-9) {
				t.Fatalf("entry %d, %d: E·D is %g, Dᵀ·D is %g; want %g and %g", i, j, inverse, gram, want, want*scale*scale)
			}
		}
	}
	for _, step := range []float64{0, 0.5} {
		s.Step = step
		dir := t.TempDir()
		if err := s.Write(dir, make([]float32, d)); err != nil {
			t.Fatal(err)
		}
		p, err := prior.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if l := p.Card.Latent; l == nil || l.Channels != 2 || l.Factor != 2 || (l.FirstStage == prior.VQ) != (step > 0) {
			t.Errorf("step %g: latent space %+v", step, l)
		}
	}
}
