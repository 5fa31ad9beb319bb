package operator

import (
	"fmt"
	"math"
	"testing"
)

// The decomposition along an axis is exact and orthogonal, also for odd lengths and a single row.
func TestDecompose(t *testing.T) {
	t.Parallel()
	matrices := map[string]*matrix{}
	for _, n := range []int{2, 9, 16, 31, 64} {
		matrices[fmt.Sprint("blur of ", n)] = reflecting(n, gaussianTaps(2*(n/4)+1, 0.06*float64(n))).dense()
		matrices[fmt.Sprint("average of ", n)] = fill(1, n, func(_, _ int) float64 { return 1 / float64(n) })
	}
	for n, factor := range map[int]int{8: 2, 12: 4, 27: 3, 35: 5, 36: 4, 64: 4} {
		matrices[fmt.Sprintf("%d times smaller than %d", factor, n)] = bicubicDown(n, factor).dense()
	}
	for name, r := range matrices {
		d, err := decompose(r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i := range r.rows {
			for j := range r.cols {
				sum := 0.0
				for k := range r.rows {
					sum += float64(d.ut.data[k*r.rows+i]) * d.s[k] * float64(d.v.data[j*r.cols+k])
				}
				if e := math.Abs(sum - float64(r.data[i*r.cols+j])); !(e <= 1e-6) {
					t.Fatalf("%s: element (%d, %d) of U·S·Vᵀ differs by %.2g", name, i, j, e)
				}
			}
		}
		wantOrthogonal(t, name+", V", d.v)
		wantOrthogonal(t, name+", U", &matrix{r.rows, r.rows, d.ut.data[:r.rows*r.rows]})
		for k := range r.cols {
			if k < r.rows && !(d.s[k] >= 0) || k >= r.rows && d.s[k] != 0 {
				t.Errorf("%s: singular value %d is %g", name, k, d.s[k])
			}
			if k >= r.rows {
				for i := range r.rows {
					if d.ut.data[k*r.rows+i] != 0 {
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
	a := &axisSVD{s: []float64{0.25, 0.5, 1}}
	for i, want := range []float64{0, 0.5, 1} {
		if got := a.value(i, 0.5); got != want {
			t.Errorf("singular value %g becomes %g, want %g", a.s[i], got, want)
		}
	}
}

// The largest side is decomposed, and equal axes once.
func TestNewSVD(t *testing.T) {
	t.Parallel()
	mean := func(n int) *matrix { return fill(1, n, func(_, _ int) float64 { return 1 / float64(n) }) }
	if _, err := newSVD(mean(maxSVD), mean(8)); err != nil {
		t.Errorf("side %d: %v", maxSVD, err)
	}
	for width, want := range map[int]bool{8: true, 10: false} {
		left, right, err := decomposeAxes(mean(8), mean(width))
		if err != nil {
			t.Fatal(err)
		}
		if equal := left == right; equal != want {
			t.Errorf("8×%d: one decomposition for both axes is %v", width, equal)
		}
	}
}

func wantOrthogonal(t *testing.T, name string, m *matrix) {
	t.Helper()
	p := m.transposed().times(m)
	for i := range p.rows {
		for j := range p.cols {
			want := 0.0
			if i == j {
				want = 1
			}
			if e := math.Abs(float64(p.data[i*p.cols+j]) - want); !(e <= 2e-6) {
				t.Fatalf("%s: element (%d, %d) of the Gram matrix is off by %.2g", name, i, j, e)
			}
		}
	}
}
