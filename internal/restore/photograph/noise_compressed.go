package photograph

import (
	"fmt"
	"iter"
	"math"
	"slices"
)

// EstimateCompressed is Estimate for a picture of a file with lossy compression, which removes noise from colours and fine details, so that Estimate finds
// hardly any. It is the level of white noise that is as strong as the coarse details of the brightness, which compression keeps, in the quietest blocks of a
// cosine transform. Texture everywhere counts as noise. The estimate has two digits. Observed is not used.
func EstimateCompressed(p Noisy) (float64, error) {
	if p = p.distinct(); p.Channels != 1 && p.Channels != 3 {
		return 0, fmt.Errorf("estimate the noise: %d channels are no picture", p.Channels)
	}
	weights := slices.Repeat([]float64{1 / math.Sqrt(float64(p.Channels))}, p.Channels)
	all := p.spectra(weights)
	if len(all) < fewestBlocks {
		return 0, fmt.Errorf("estimate the noise: %w: %d of %d×%d pixels without clipped values, at least %d are needed", ErrFewPatches, len(all), block, block, fewestBlocks)
	}
	return roundTo(max(quiet(all, 1)[0], p.Step/math.Sqrt(12)), digitsCompressed), nil
}

// spectra returns the coefficients of sums of the channels with some weights, in turn, of each block with few clipped pixels.
func (p Noisy) spectra(sums ...[]float64) (all []*square) {
	for y, x := range p.places() {
		if p.clipped(y, x) <= clippedOfBlock*block*block {
			for _, weights := range sums {
				all = append(all, p.weighted(y, x, weights))
			}
		}
	}
	return all
}

// places yields the upper left pixels of the blocks, of a large picture at equal distances.
func (p Noisy) places() iter.Seq2[int, int] {
	rows, cols, stride := p.Height/block, p.Width/block, 1
	for ((rows+stride-1)/stride)*((cols+stride-1)/stride) > mostPatches {
		stride++
	}
	return func(yield func(y, x int) bool) {
		for y := 0; y < rows; y += stride {
			for x := 0; x < cols; x += stride {
				if !yield(y*block, x*block) {
					return
				}
			}
		}
	}
}

// clipped counts the pixels of a block with a clipped channel.
func (p Noisy) clipped(y, x int) (n float64) {
	for i := range block * block {
		at := (y+i/block)*p.Width + x + i%block
		for c := range p.Channels {
			if v := p.Pix[c*p.Height*p.Width+at]; v <= -1 || v >= 1 {
				n++
				break
			}
		}
	}
	return n
}

// square has the values of a block, or the coefficients of its cosine transform.
type square [block][block]float64

// weighted returns the coefficients of a weighted sum of the channels.
func (p Noisy) weighted(y, x int, weights []float64) *square {
	var v, half, out square // half is transformed along rows
	for i := range block {
		for k := range block {
			for c, w := range weights {
				v[i][k] += w * float64(p.Pix[(c*p.Height+y+i)*p.Width+x+k])
			}
		}
	}
	for i := range block {
		for k := range block {
			for x := range block {
				half[i][k] += basis[k][x] * v[i][x]
			}
		}
	}
	for l := range block {
		for k := range block {
			for y := range block {
				out[l][k] += basis[l][y] * half[y][k]
			}
		}
	}
	return &out
}

// basis has the cosines of a block, row by row.
var basis = func() (out square) {
	for k := range block {
		for x := range block {
			out[k][x] = math.Sqrt(2./block) * math.Cos(math.Pi*float64((2*x+1)*k)/(2*block))
		}
		if k == 0 {
			for x := range block {
				out[k][x] /= math.Sqrt2
			}
		}
	}
	return out
}()

// split returns the coefficients of a block in the bands, and all finer ones. Those of coarser details are left out.
func split(v *square) (all [bands + 1][]float64) {
	for l := range block {
		for k := range block {
			if l+k > coarse {
				band := min(bands, (l+k-coarse-1)/bandWidth)
				all[band] = append(all[band], v[l][k])
			}
		}
	}
	return all
}
