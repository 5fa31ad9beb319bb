package axis

import (
	"fmt"
	"math"
	"testing"
)

// The decomposition along an axis is exact and orthogonal, also for odd lengths and a single row.
func TestDecompose(t *testing.T) {
	t.Parallel()
	matrices := map[string]*Matrix{}
	for _, n := range []int{2, 9, 16, 31, 64} {
		matrices[fmt.Sprint("blur of ", n)] = blur(n, n/4, 0.06*float64(n)).Dense()
		matrices[fmt.Sprint("average of ", n)] = Fill(1, n, func(_, _ int) float64 { return 1 / float64(n) })
	}
	for n, factor := range map[int]int{8: 2, 12: 4, 27: 3, 35: 5, 36: 4, 64: 4} {
		matrices[fmt.Sprintf("%d times smaller than %d", factor, n)] = smaller(n, factor).Dense()
	}
	for name, r := range matrices {
		d, err := Decompose(r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i := range r.Rows {
			for j := range r.Cols {
				sum := 0.0
				for k := range r.Rows {
					sum += float64(d.Ut.Data[k*r.Rows+i]) * d.S[k] * float64(d.V.Data[j*r.Cols+k])
				}
				if e := math.Abs(sum - float64(r.Data[i*r.Cols+j])); !(e <= 1e-6) {
					t.Fatalf("%s: element (%d, %d) of U·S·Vᵀ differs by %.2g", name, i, j, e)
				}
			}
		}
		wantOrthogonal(t, name+", V", d.V)
		wantOrthogonal(t, name+", U", &Matrix{r.Rows, r.Rows, d.Ut.Data[:r.Rows*r.Rows]})
		for k := range r.Cols {
			if k < r.Rows && !(d.S[k] >= 0) || k >= r.Rows && d.S[k] != 0 {
				t.Errorf("%s: singular value %d is %g", name, k, d.S[k])
			}
			if k >= r.Rows {
				for i := range r.Rows {
					if d.Ut.Data[k*r.Rows+i] != 0 {
						t.Errorf("%s: row %d of Uᵀ is not zero", name, k)
					}
				}
			}
		}
	}
}

// A singular value at the limit counts.
func TestAxisValue(t *testing.T) {
	t.Parallel()
	a := &SVD{S: []float64{0.25, 0.5, 1}}
	for i, want := range []float64{0, 0.5, 1} {
		if got := a.Value(i, 0.5); got != want {
			t.Errorf("singular value %g becomes %g, want %g", a.S[i], got, want)
		}
	}
}

func wantOrthogonal(t *testing.T, name string, m *Matrix) {
	t.Helper()
	p := m.Transposed().Times(m)
	for i := range p.Rows {
		for j := range p.Cols {
			want := 0.0
			if i == j {
				want = 1
			}
			if e := math.Abs(float64(p.Data[i*p.Cols+j]) - want); !(e <= 2e-6) {
				t.Fatalf("%s: element (%d, %d) of the Gram matrix is off by %.2g", name, i, j, e)
			}
		}
	}
}
