package noiselevel

import (
	"cmp"
	"fmt"
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

// frequencies are the coefficients of a block: the squares of the coarse ones, and those of the bands.
type frequencies struct {
	coarse float64
	bands  [bands][]float64
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
	var basis [block][block]float64
	for k := range block {
		for x := range block {
			basis[k][x] = math.Sqrt(2./block) * math.Cos(math.Pi*float64((2*x+1)*k)/(2*block))
		}
		if k == 0 {
			for x := range block {
				basis[k][x] /= math.Sqrt2
			}
		}
	}
	// Those of a large picture are at equal distances.
	rows, cols, stride := p.Height/block, p.Width/block, 1
	for ((rows+stride-1)/stride)*((cols+stride-1)/stride) > mostPatches {
		stride++
	}
	for y := 0; y < rows; y += stride {
		for x := 0; x < cols; x += stride {
			if v, ok := p.brightness(y*block, x*block); ok {
				out = append(out, transform(&basis, &v))
			}
		}
	}
	return out
}

// brightness returns that of a block, or false if it has too many clipped pixels.
func (p Picture) brightness(y, x int) (out [block][block]float64, ok bool) {
	clipped := 0
	for i := range block {
		for k := range block {
			at, cut := (y+i)*p.Width+x+k, false
			for c := range p.Channels {
				v, weight := p.Pix[c*p.Height*p.Width+at], 1.0
				if p.Channels > 1 {
					weight = luma[c]
				}
				out[i][k] += weight * float64(v)
				cut = cut || v <= -1 || v >= 1
			}
			if cut {
				clipped++
			}
		}
	}
	return out, float64(clipped) <= flattest*block*block
}

// transform returns the frequencies of a block.
func transform(basis, v *[block][block]float64) (f frequencies) {
	var half [block][block]float64 // along rows
	for i := range block {
		for k := range block {
			for x := range block {
				half[i][k] += basis[k][x] * v[i][x]
			}
		}
	}
	for l := range block {
		for k := range block {
			band := (l + k - coarse - 1) / bandWidth
			if l+k == 0 || l+k > coarse+bands*bandWidth {
				continue
			}
			sum := 0.0
			for y := range block {
				sum += basis[l][y] * half[y][k]
			}
			if l+k <= coarse {
				f.coarse += sum * sum
			} else {
				f.bands[band] = append(f.bands[band], sum)
			}
		}
	}
	return f
}
