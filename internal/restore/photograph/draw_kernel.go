package photograph

import (
	"fmt"
	"math"
	"slices"

	"ddiff/internal/restore/raster"
	"ddiff/restore/operator"
)

// readKernel reads a kernel from a picture, with the mean of its colours.
func (f *DrawFile) readKernel(p *raster.Picture) {
	n := p.Image.Height * p.Image.Width
	d := f.Draw
	d.Data = make([]float32, n)
	for i := range n {
		for c := range 3 {
			d.Data[i] += (p.Image.Plane(c)[i] + 1) / 6
		}
	}
	f.readLayer(p)
	if looksInverted(d) {
		for i, v := range d.Data {
			d.Data[i] = max(0, 1-v)
		}
		f.note("it was dark on white and has been inverted: a kernel is bright where the light went")
	}
	f.flatten()
	f.crop()
	f.square()
	f.noteCentre()
	sum := 0.0
	for _, v := range d.Data {
		sum += float64(v)
	}
	if sum > 0 {
		for i := range d.Data {
			d.Data[i] = float32(float64(d.Data[i]) / sum)
		}
	}
}

// readLayer reads a kernel on a transparent layer: its light is the opacity, times the brightness unless it is black.
func (f *DrawFile) readLayer(p *raster.Picture) {
	if p.Alpha == nil {
		return
	}
	const visible = 0.05
	light := make([]float32, len(f.Draw.Data))
	for i, a := range p.Alpha.Pix {
		light[i] = max(0, f.Draw.Data[i]-(1-a)) // without the white below
	}
	f.note("it lies on a transparent layer, whose opacity counts")
	if slices.Max(light) < visible {
		copy(f.Draw.Data, p.Alpha.Pix)
		return
	}
	f.Draw.Data = light
}

// ring returns the values along the border.
func ring(d *operator.Draw) (out []float32) {
	h, w := d.Dims[0], d.Dims[1]
	for i, v := range d.Data {
		if y, x := i/w, i%w; y == 0 || y == h-1 || x == 0 || x == w-1 {
			out = append(out, v)
		}
	}
	return out
}

func median(v []float32) float32 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}

// looksInverted reports whether a kernel is bright along its border and nearly everywhere, and dark elsewhere.
func looksInverted(d *operator.Draw) bool {
	if len(d.Data) < 9 || d.Dims[0] < 3 || d.Dims[1] < 3 {
		return false
	}
	top, low := slices.Max(d.Data), slices.Min(d.Data)
	return top > 0 && low < top/2 && median(ring(d)) > 0.9*top && median(d.Data) > 0.9*top
}

// flatten takes away an even background, as of a scanned or compressed picture: most of a kernel's frame is as dark as its border.
func (f *DrawFile) flatten() {
	const (
		darkest = 0.2      // of the largest value
		step    = 1. / 255 // of the levels of a file
	)
	d := f.Draw
	if len(d.Data) < 9 {
		return
	}
	ground, even := median(ring(d)), 0
	for _, v := range d.Data {
		if v <= ground+2*step && v >= ground-2*step {
			even++
		}
	}
	if ground < step/2 || ground > darkest*slices.Max(d.Data) || 2*even < len(d.Data) {
		return
	}
	for i, v := range d.Data {
		if d.Data[i] = v - ground; v <= ground+2*step {
			d.Data[i] = 0
		}
	}
	f.note("its background, %.0f of 255, counts as black", 255*ground)
}

// crop leaves out a wide frame of zeros: about the centre, or, if the light lies far from it, about the light.
func (f *DrawFile) crop() {
	d := f.Draw
	h, w := d.Dims[0], d.Dims[1]
	top, left, bottom, right := h, w, -1, -1
	for i, v := range d.Data {
		if v != 0 {
			top, left, bottom, right = min(top, i/w), min(left, i%w), max(bottom, i/w), max(right, i%w)
		}
	}
	if bottom < 0 {
		return
	}
	reach := max(h/2-top, bottom-h/2, w/2-left, right-w/2) // from the centre
	own := max(bottom-top, right-left)/2 + 1
	middle, moved := [2]int{h / 2, w / 2}, false
	if reach > 2*own+2 && reach > min(h, w)/4 {
		middle, reach, moved = [2]int{(top + bottom) / 2, (left + right) / 2}, own, true
		f.note("its light lies %s the centre of its frame, and was moved there: the picture is restored without this shift", away(float64(middle[1]-w/2), float64(middle[0]-h/2)))
	}
	side := 2*reach + 1
	if !moved && 2*side > min(h, w) { // a narrow frame
		return
	}
	out := make([]float32, side*side)
	for y := range side {
		for x := range side {
			if v, u := middle[0]-reach+y, middle[1]-reach+x; v >= 0 && v < h && u >= 0 && u < w {
				out[y*side+x] = d.Data[v*w+u]
			}
		}
	}
	d.Dims, d.Data = []int{side, side}, out
}

// square pads a kernel with zeros to an odd side. The centre of an even side n is element n/2 from 0, as in NumPy, SciPy and OpenCV, so that the zeros
// follow it; two odd sides get them on both sides.
func (f *DrawFile) square() {
	d := f.Draw
	h, w := d.Dims[0], d.Dims[1]
	side := max(h+1-h%2, w+1-w%2)
	if h == side && w == side || h < 1 || w < 1 || side > maxSide {
		return
	}
	out := make([]float32, side*side)
	top, left := side/2-h/2, side/2-w/2
	for y := range h {
		copy(out[(y+top)*side+left:], d.Data[y*w:][:w])
	}
	d.Dims, d.Data = []int{side, side}, out
	if h%2 == 0 || w%2 == 0 {
		f.note("its sides are %s: the centre is element %d, %d from 0, as in SciPy and OpenCV; for another one pad it with zeros to odd sides, at the right and below for this one", sides(h, w), h/2, w/2)
	}
}

// noteCentre says where the light of a kernel lies, if that is far from its centre: a shifted kernel shifts the restored picture, which no picture shows.
func (f *DrawFile) noteCentre() {
	f.noteEven()
	d := f.Draw
	if right, below := centre(d); math.Hypot(right, below) >= max(offCentre, offCentreShare*float64(d.Dims[0])) {
		f.note("the mean of its light lies %s its centre: the restored picture may be shifted by as much", away(right, below))
	}
}

// centre returns where the mean of a kernel's light lies from its centre; NaN without light.
func centre(d *operator.Draw) (right, below float64) {
	sum := 0.0
	for i, v := range d.Data {
		right += float64(v) * float64(i%d.Dims[1]-d.Dims[1]/2)
		below += float64(v) * float64(i/d.Dims[1]-d.Dims[0]/2)
		sum += float64(v)
	}
	return right / sum, below / sum
}

// noteEven says that a kernel of even sides, whose two halves are alike, was given odd ones by zeros at the left and above.
func (f *DrawFile) noteEven() {
	d, side := f.Draw, f.Draw.Dims[0]
	if side != d.Dims[1] || side < 3 || side%2 == 0 {
		return
	}
	even := &operator.Draw{Dims: []int{side - 1, side - 1}}
	light := [2]bool{} // in its first row and column
	for i, v := range d.Data {
		switch y, x := i/side, i%side; {
		case (y == 0 || x == 0) && v != 0:
			return
		case y > 0 && x > 0:
			light[0], light[1] = light[0] || y == 1 && v != 0, light[1] || x == 1 && v != 0
			even.Data = append(even.Data, v)
		}
	}
	if light[0] && light[1] && symmetric(even) {
		f.note("it is one of sides %s below and to the right of zeros; SciPy and OpenCV centre such a kernel as if the zeros were at the right and below: if the picture was blurred so, give it without zeros", sides(side-1, side-1))
	}
}

// away says how far to the right and below a place lies.
func away(right, below float64) string {
	across, along := "to the right", "below"
	if right < 0 {
		across = "to the left"
	}
	if below < 0 {
		along = "above"
	}
	tenths := func(v float64) float64 { return math.Round(10*math.Abs(v)) / 10 }
	return fmt.Sprintf("%g pixels %s and %g %s", tenths(right), across, tenths(below), along)
}

func sides(h, w int) string { return fmt.Sprintf("%d×%d", w, h) }

// maxSide bounds the memory of a kernel that is padded to a square.
const maxSide = 1 << 12
