package noiselevel

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
)

const (
	// block is the side of a block of JPEG.
	block = 8
	// coarse is the largest sum of the two frequencies with which flat blocks are chosen; bandWidth sums above it make a band.
	coarse    = 2
	bandWidth = 2
	bands     = 3
	// flattest is the share of the blocks in which noise is measured, fewestBlocks their least number.
	flattest     = 0.1
	fewestBlocks = 16
	// hidden is the share of coefficients within a level of 0 from which compression has erased the noise of a band.
	hidden = 0.7
	level  = 2. / 255
	// digitsCompressed is the number of significant digits.
	digitsCompressed = 2
)

// luma are the weights of red, green and blue in brightness, by ITU-R BT.601, as in JPEG.
var luma = [3]float64{0.299, 0.587, 0.114}

// frequencies are the coefficients of a block: the squares of the coarse ones, those of the bands, and all finer ones.
type frequencies struct {
	coarse float64
	bands  [bands + 1][]float64
}

// EstimateCompressed is Estimate for a picture of a file with lossy compression, which removes noise from colours and fine details, so that Estimate finds
// hardly any. It measures the variance of the brightness in the blocks of a cosine transform whose coarse frequencies are smallest, in the finest of three bands
// that the compression has left, and in the coarsest if it has left none. Texture everywhere counts as noise. The estimate has two digits, and stands for white noise
// before the compression. Observed is not used.
func EstimateCompressed(p Picture) (float64, error) {
	if p = p.distinct(); p.Channels != 1 && p.Channels != len(luma) {
		return 0, fmt.Errorf("estimate the noise: %d channels are no picture", p.Channels)
	}
	all := p.blocks()
	if len(all) < fewestBlocks {
		return 0, fmt.Errorf("estimate the noise: %w: %d of %d×%d pixels without clipped values, at least %d are needed", ErrFewPatches, len(all), block, block, fewestBlocks)
	}
	slices.SortFunc(all, func(a, b frequencies) int { return cmp.Compare(a.coarse, b.coarse) })
	all = all[:max(fewestBlocks, int(flattest*float64(len(all))))]
	variance := 0.0
	for band := range bands {
		sum, zeros, n := 0.0, 0, 0
		for _, f := range all {
			for _, c := range f.bands[band] {
				if n++; math.Abs(c) < level {
					zeros++
				}
				sum += c * c
			}
		}
		if band > 0 && float64(zeros) > hidden*float64(n) {
			break
		}
		variance = sum / float64(n)
	}
	if p.Channels > 1 { // the brightness has less noise than a channel
		variance /= luma[0]*luma[0] + luma[1]*luma[1] + luma[2]*luma[2]
	}
	return roundTo(max(math.Sqrt(variance), p.Step/math.Sqrt(12)), digitsCompressed), nil
}

// blocks returns the frequencies of the brightness in all blocks with few clipped pixels.
func (p Picture) blocks() (out []frequencies) {
	weights := luma[:]
	if p.Channels == 1 {
		weights = []float64{1}
	}
	for y, x := range p.places() {
		if p.clipped(y, x) <= flattest*block*block {
			out = append(out, split(p.weighted(y, x, weights...)))
		}
	}
	return out
}

// places yields the upper left pixels of the blocks, of a large picture at equal distances.
func (p Picture) places() iter.Seq2[int, int] {
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
func (p Picture) clipped(y, x int) (n float64) {
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
func (p Picture) weighted(y, x int, weights ...float64) *square {
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

// split returns the frequencies of a block.
func split(v *square) (f frequencies) {
	for l := range block {
		for k := range block {
			switch c := v[l][k]; {
			case l+k == 0:
			case l+k <= coarse:
				f.coarse += c * c
			default:
				band := min(bands, (l+k-coarse-1)/bandWidth)
				f.bands[band] = append(f.bands[band], c)
			}
		}
	}
	return f
}
