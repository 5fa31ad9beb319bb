package photograph

import (
	"errors"
	"slices"
	"sync"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// patches are the usable patches of a picture.
type patches struct {
	Noisy
	entries int     // of a patch
	places  []place // row by row
	offset  float64 // subtracted from all values, which limits the rounding of sums
	clipped bool    // some values are
}

// place is the index of a patch's upper left pixel in a channel, with the energy of the patch's gradients.
type place struct {
	at     int
	energy float64
	mean   float64
}

func newPatches(p Noisy) *patches {
	s := &patches{Noisy: p, entries: side * side * p.Channels}
	rows, cols := p.Height-side+1, p.Width-side+1
	if rows < 1 || cols < 1 {
		return s
	}
	for _, v := range p.Pix {
		s.offset += float64(v) / float64(len(p.Pix))
		s.clipped = s.clipped || v == -1 || v == 1
	}
	stride := 1
	for ((rows+stride-1)/stride)*((cols+stride-1)/stride) > mostPatches {
		stride++
	}
	patch := make([]float64, s.entries)
	for y := 0; y < rows; y += stride {
		for x := 0; x < cols; x += stride {
			if at := y*p.Width + x; s.usable(at) {
				s.read(patch, at)
				s.places = append(s.places, place{at, energy(patch), s.offset + mean(patch)})
			}
		}
	}
	return s
}

// usable reports whether a patch has no holes and few clipped entries.
func (s *patches) usable(at int) bool {
	clipped := 0
	for row := at; row < at+side*s.Width; row += s.Width {
		if s.Observed != nil && slices.Contains(s.Observed[row:row+side], 0) {
			return false
		}
		for c := 0; s.clipped && c < len(s.Pix); c += s.Height * s.Width {
			for _, v := range s.Pix[c+row:][:side] {
				if v == -1 || v == 1 {
					clipped++
				}
			}
		}
	}
	return float64(clipped) <= clippedShare*float64(s.entries)
}

// read copies the entries of a patch, channel by channel, row by row.
func (s *patches) read(into []float64, at int) {
	for i := 0; i < len(into); i += side {
		for k, v := range s.Pix[s.entry(i)+at:][:side] {
			into[i+k] = float64(v) - s.offset
		}
	}
}

// entry returns where the entry i of the patch at 0 is.
func (s *patches) entry(i int) int {
	return (i/(side*side)*s.Height+i/side%side)*s.Width + i%side
}

func mean(patch []float64) float64 {
	sum := 0.0
	for _, v := range patch {
		sum += v
	}
	return sum / float64(len(patch))
}

// energy is the sum of the squared central differences along rows and columns inside a patch.
func energy(patch []float64) float64 {
	sum := 0.0
	for ; len(patch) > 0; patch = patch[side*side:] {
		for i := range side {
			for k := range side - 2 {
				along, across := (patch[i*side+k+2]-patch[i*side+k])/2, (patch[(k+2)*side+i]-patch[k*side+i])/2
				sum += along * along
				sum += across * across
			}
		}
	}
	return sum
}

// divide returns those of some patches whose gradients have less energy than limit, and the others.
func divide(places []place, limit float64) (flat, others []place) {
	for _, p := range places {
		if p.energy < limit {
			flat = append(flat, p)
		} else {
			others = append(others, p)
		}
	}
	return flat, others
}

// moments are sums over patches: their number, the entries, and the upper triangle of the products of two entries.
type moments struct {
	n              float64
	sums, products []float64
}

func (s *patches) moments(places []place) moments {
	const together = 512 // patches, which fit into a cache
	size := s.entries
	m := moments{float64(len(places)), make([]float64, size), make([]float64, size*size)}
	columns := make([]float64, size*together)
	for part := range slices.Chunk(places, together) {
		column := func(i int) []float64 { return columns[i*together:][:len(part)] }
		for i := range size {
			to, from := column(i), s.Pix[s.entry(i):]
			for k, p := range part {
				to[k] = float64(from[p.at]) - s.offset
			}
		}
		// Two goroutines: of each pair of neighbouring rows, whose lengths are nearly equal, one row.
		var rows sync.WaitGroup
		for first := range 2 {
			rows.Go(func() {
				for i := first; i < size; i += 2 {
					m.sums[i] += floats.Sum(column(i))
					for j := i; j < size; j++ {
						m.products[i*size+j] += floats.Dot(column(i), column(j))
					}
				}
			})
		}
		rows.Wait()
	}
	return m
}

// minus returns the moments without those of some of the patches.
func (m moments) minus(part moments) moments {
	return moments{m.n - part.n, floats.SubTo(make([]float64, len(m.sums)), m.sums, part.sums), floats.SubTo(make([]float64, len(m.products)), m.products, part.products)}
}

// variance returns the variance of the noise in the patches.
func (m moments) variance() (float64, error) {
	size := len(m.sums)
	covariance := mat.NewSymDense(size, nil)
	for i, a := range m.sums {
		for j := i; j < size; j++ {
			covariance.SetSym(i, j, m.products[i*size+j]/m.n-a/m.n*m.sums[j]/m.n)
		}
	}
	var e mat.EigenSym
	if !e.Factorize(covariance, false) {
		return 0, errors.New("the eigenvalues of the patches do not converge")
	}
	return tail(e.Values(nil)), nil
}

// tail returns the mean of the smallest eigenvalues, of as many as have a mean that is not above their median. values are in
// ascending order.
func tail(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	for n := len(values); n > 1; n-- {
		if mean := sum / float64(n); mean <= (values[(n-1)/2]+values[n/2])/2 {
			return max(0, mean)
		}
		sum -= values[n-1]
	}
	return max(0, values[0])
}
