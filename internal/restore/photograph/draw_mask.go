package photograph

import (
	"fmt"
	"math"

	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// readMask reads a mask from a picture.
func (f *DrawFile) readMask(p *raster.Picture, lossy bool) error {
	n := p.Image.Height * p.Image.Width
	levels := make([]float64, n)
	grey, coloured := 0, 0
	for i := range n {
		lo, hi := 1.0, 0.0
		for c := range 3 {
			v := float64(p.Image.Plane(c)[i]+1) / 2
			lo, hi = min(lo, v), max(hi, v)
			levels[i] += v / 3
		}
		if levels[i] > black && levels[i] < 1-black {
			grey++
		}
		if hi-lo > colourful {
			coloured++
		}
	}
	if f.readOpacity(p, levels, grey) {
		f.doubtMask()
		return nil
	}
	share := float64(grey) / float64(n)
	if share > photographShare || float64(coloured) > colourShare*float64(n) {
		what := fmt.Sprintf("%.0f %% of its pixels are neither black nor white, as in a photograph", 100*share)
		if share <= photographShare {
			what = fmt.Sprintf("%d of its pixels have a colour", coloured)
		}
		return fmt.Errorf("%w mask: it is no black-and-white picture: %s; in a white picture of the same size paint the lost pixels black, or erase them in a copy of the photograph, so that they are transparent", operator.ErrParam, what)
	}
	if labels, err := f.readLabels(levels); labels || err != nil {
		f.doubtMask()
		return err
	}
	limit := white
	if lossy {
		limit = whiteLossy
	}
	soft := 0
	f.Draw.Data = make([]float32, n)
	for i, v := range levels {
		if f.form.MaskShows == item.MaskLost {
			v = 1 - v
		}
		if v >= limit {
			f.Draw.Data[i] = 1
		} else if v > 1-limit {
			soft++
		}
	}
	if soft > 0 {
		f.note("it has soft edges, %.2g %% of its pixels, which count as lost", 100*float64(soft)/float64(n))
	}
	f.doubtMask()
	return nil
}

// readOpacity reads a mask that is drawn with transparency: lost pixels that were erased, or strokes on a transparent layer. It reports whether the
// transparency decides.
func (f *DrawFile) readOpacity(p *raster.Picture, levels []float64, grey int) bool {
	if p.Alpha == nil {
		return false
	}
	const half = 0.5
	clear, dark := 0, 0
	for i, a := range p.Alpha.Pix {
		if a < half {
			clear++
		} else if levels[i] < half {
			dark++
		}
	}
	n := len(levels)
	if float64(clear) < clearShare*float64(n) {
		return false
	}
	several := float64(grey) > photographShare*float64(n-clear)
	if dark > 0 && !several && f.form.MaskShows != item.MaskLost {
		return false // black strokes: over white they are a mask
	}
	f.Draw.Data = make([]float32, n)
	erased := several && !oneColour(p) || 2*clear <= n
	for i, a := range p.Alpha.Pix {
		// A pixel that is transparent in part belongs to the lost ones.
		if erased && a >= white || !erased && a <= 1-white {
			f.Draw.Data[i] = 1
		}
	}
	if erased {
		f.note("its transparent pixels, %.2g %%, count as lost", 100*float64(clear)/float64(n))
	} else {
		f.note("the strokes on its transparent layer, %.2g %% of the pixels, count as lost", 100*float64(n-clear)/float64(n))
	}
	return true
}

// oneColour reports whether the opaque pixels of a picture have one colour, as strokes of a brush and not of a photograph.
func oneColour(p *raster.Picture) bool {
	const opaque, differs = 1, 0.05
	for c := range p.Image.Channels {
		lo, hi := float32(math.Inf(1)), float32(math.Inf(-1))
		for i, v := range p.Image.Plane(c) {
			if p.Alpha.Pix[i] >= opaque {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
		if hi-lo > differs {
			return false
		}
	}
	return true
}

// readLabels reads a mask whose levels are 0 and 1 of 255, or the like, as one of zeros and ones. It refuses more labels.
func (f *DrawFile) readLabels(levels []float64) (ok bool, err error) {
	seen := map[float64]bool{}
	top := 0.0
	for _, v := range levels {
		if v*255 > fewLevels+0.5 {
			return false, nil
		}
		if seen[v], top = true, max(top, v); len(seen) > fewLevels {
			return false, nil
		}
	}
	if top == 0 {
		return false, nil // black alone, which the operator refuses
	}
	if len(seen) > 2 {
		return false, fmt.Errorf("%w mask: it has %d levels from 0 to %.0f of 255, as labels have; make the lost pixels black and all others white", operator.ErrParam, len(seen), 255*top)
	}
	f.Draw.Data = make([]float32, len(levels))
	for i, v := range levels {
		if v == top {
			f.Draw.Data[i] = 1
		}
	}
	f.exchange()
	f.note("its levels are 0 and %.0f of 255: %.0f counts as white", 255*top, 255*top)
	return true, nil
}

// doubtMask doubts a mask that drops more than it leaves, and that in one piece: scattered pixels are dropped on purpose.
func (f *DrawFile) doubtMask() {
	if f.form.MaskShows != "" {
		return
	}
	h, w := f.Draw.Dims[0], f.Draw.Dims[1]
	share, hole := f.Lost(), WidestHole(f.Draw.Data, w)
	if share < 1 && share > mostLost && hole >= leastHole && float64(hole) > widestLost*float64(min(h, w)) {
		f.Doubt = fmt.Sprintf("it drops %.0f %% of the pixels, among them a square of %d×%d: is it inverted? give --mask-shows lost if white shows the lost pixels, or --mask-shows kept", 100*share, hole, hole)
	}
}

// WidestHole returns the side of the largest square that a mask drops. Each element of sides is that of the largest square whose lower right corner is there.
func WidestHole(mask []float32, width int) int {
	sides, widest := make([]int, len(mask)), 0
	for i, v := range mask {
		switch {
		case v != 0:
			continue
		case i < width || i%width == 0:
			sides[i] = 1
		default:
			sides[i] = 1 + min(sides[i-1], sides[i-width], sides[i-width-1])
		}
		widest = max(widest, sides[i])
	}
	return widest
}
