package job

import (
	"math"
	"slices"

	"ddiff/internal/restore/photograph"
)

// outliers finds the dead and hot pixels of a stored picture, and returns their places; none if they are too many to be those. A picture that is blurred in all directions has
// nothing as sharp as an isolated sample. Others have such details, and of them only lone samples that are black or white count: those of pixels that are so in all channels, if these are a
// few, and all, if they are many and most are not of such pixels.
func (j *Job) outliers() []bool {
	bad := make([]bool, j.pixels())
	found := j.samples(plane.isolated)
	if !j.smooth() {
		many, pixels, only := j.stuck(found)
		if !many && !pixels {
			return bad
		}
		found = slices.DeleteFunc(j.samples(plane.lone), func(i int) bool { return (only || !many) && !j.wholeAtEnd(i) })
	}
	if float64(len(found)) > photograph.MostOutliers*float64(len(j.Problem.Y)) {
		return bad
	}
	for _, i := range found {
		bad[i%len(bad)] = true
	}
	return bad
}

// smooth reports whether the picture is blurred in all directions: what is sharp across a straight motion stays so.
func (j *Job) smooth() bool {
	switch {
	case !j.Op.Blur:
		return false
	case j.draw != nil:
		return photograph.DetailsLeft(j.draw, photograph.FineFrequency) <= photograph.MostFine
	}
	s := 2 * math.Pi * photograph.FineFrequency * j.Op.Image.Length(j.Op.Params[j.Op.Width])
	return math.Exp(-s*s/2) <= photograph.MostFine
}

// stuck reports whether many samples of a sharp picture are dead or hot, whether pixels are so in all channels, and whether only these are, by the isolated samples. A picture has few
// samples that are black or white alone among their neighbours, also beside all its black and white ones where much of the scene is beyond the range.
func (j *Job) stuck(isolated []int) (many, pixels, only bool) {
	n := float64(j.pixels())
	var all, alone, whole, wholeAlone, sure [2]float64 // black and white
	add := func(to *[2]float64, i int) { to[(end(j.Problem.Y[i])+1)/2]++ }
	for i := range j.Problem.Y {
		if j.atEnd(i) {
			add(&all, i)
			if i < j.pixels() && j.wholeAtEnd(i) {
				add(&whole, i)
			}
		}
	}
	for _, i := range isolated {
		if j.atEnd(i) {
			add(&alone, i)
		}
	}
	near, seen := map[int]bool{}, map[int]bool{}
	if j.Op.Mosaic { // a detail of the scene has neighbours in the other colours
		for _, i := range (plane{v: j.Problem.Y, least: photograph.LeastFar, height: j.Op.Measurement[1], width: j.Op.Measurement[2]}).peaks() {
			near[i] = true
		}
	}
	for _, i := range j.samples(plane.peaks) {
		if near[i] {
			add(&sure, i)
		}
		if at := i % j.pixels(); j.wholeAtEnd(i) && !seen[at] {
			seen[at] = true
			add(&wholeAlone, i)
		}
	}
	noticed := func(part, of [2]float64) (sum float64) {
		for k := range part {
			if part[k] >= photograph.AloneShare*of[k] {
				sum += part[k]
			}
		}
		return sum
	}
	ends, wholes := noticed(alone, all), noticed(wholeAlone, whole)
	many = ends >= max(photograph.FewestStuck, photograph.StuckShare*float64(len(isolated))) || noticed(sure, all) >= max(photograph.FewestSure, photograph.SureShare*n)
	pixels = wholes >= max(photograph.FewestWhole, photograph.WholeShare*n)
	return many, pixels, pixels && wholes*float64(j.Op.Measurement[0]) >= photograph.WholeEnds*ends // the others have noise, or a colour
}

// samples returns the samples of y that are found in its planes.
func (j *Job) samples(find func(plane) []int) (out []int) {
	for _, p := range j.planes() {
		for _, at := range find(p) {
			out = append(out, p.at[at])
		}
	}
	return out
}

// atEnd reports whether a sample is black or white, wholeAtEnd whether all those of its pixel are, of which there are several, or one of a grey image.
func (j *Job) atEnd(i int) bool { return end(j.Problem.Y[i]) != 0 }

func (j *Job) wholeAtEnd(i int) bool {
	n := j.pixels()
	for k := i % n; k < len(j.Problem.Y); k += n {
		if !j.atEnd(k) {
			return false
		}
	}
	return len(j.Problem.Y) > n || j.Op.Image.Channels == 1
}

// plane is a part of a picture whose samples have neighbours of their kind: a channel, or in a mosaic the samples of one place in the squares of 2×2 pixels.
type plane struct {
	v             []float32
	least         float32 // a lower bound of the distance of an isolated sample
	at            []int   // the places of v in y
	height, width int
}

// pixels is the number of pixels of y.
func (j *Job) pixels() int { return j.Op.Measurement[1] * j.Op.Measurement[2] }

// planes divides y, which is a picture.
func (j *Job) planes() (out []plane) {
	height, width, step := j.Op.Measurement[1], j.Op.Measurement[2], 1
	if j.Op.Mosaic {
		step = 2
	}
	least := photograph.LeastFar
	if !j.smooth() { // of all samples, with the noise of white alone, less than one is expected as far
		least = max(least, photograph.MedianNoise*math.Sqrt(2*j.noise().Variance([]float32{1}))*math.Erfinv(1-1/float64(len(j.Problem.Y))))
	}
	for first := 0; first < len(j.Problem.Y); first += height * width {
		for part := range step * step {
			p := plane{height: height / step, width: width / step, least: float32(least)}
			p.v, p.at = make([]float32, 0, p.height*p.width), make([]int, 0, p.height*p.width)
			for y := part / step; y < height; y += step {
				for x := part % step; x < width; x += step {
					at := first + y*width + x
					p.v, p.at = append(p.v, j.Problem.Y[at]), append(p.at, at)
				}
			}
			out = append(out, p)
		}
	}
	return out
}

// end is 1 for white, −1 for black, and 0 for other samples.
func end(v float32) int {
	switch {
	case v >= photograph.StuckLevel:
		return 1
	case v <= -photograph.StuckLevel:
		return -1
	}
	return 0
}

// lone returns the samples that are black or white far from the median of their neighbours, of which at most one is so, too: what is too bright or too dark for a camera
// has more.
func (p plane) lone() (found []int) {
	bad, buffer := make([]bool, len(p.v)), [8]float32{}
	for at, v := range p.v {
		if end(v) == 0 {
			continue
		}
		same := -1 // it is among its neighbours
		for y := max(0, at/p.width-1); y <= min(p.height-1, at/p.width+1); y++ {
			for x := max(0, at%p.width-1); x <= min(p.width-1, at%p.width+1); x++ {
				if end(p.v[y*p.width+x]) == end(v) {
					same++
				}
			}
		}
		if same > 1 {
			continue
		}
		if d := v - median(p.neighbours(buffer[:0], at, bad)); d >= photograph.LeastFar || d <= -photograph.LeastFar {
			found = append(found, at)
		}
	}
	return found
}

// neighbours appends the neighbours of a sample that are not bad. They are without the slope of the picture, so that edges count as flat.
func (p plane) neighbours(into []float32, at int, bad []bool) []float32 {
	y, x := at/p.width, at%p.width
	var down, across float32
	if y > 0 && y < p.height-1 && x > 0 && x < p.width-1 {
		down, across = p.slope(at, p.width, 1, bad), p.slope(at, 1, p.width, bad)
	}
	for i := max(0, y-1); i <= min(p.height-1, y+1); i++ {
		for k := max(0, x-1); k <= min(p.width-1, x+1); k++ {
			if n := i*p.width + k; n != at && !bad[n] {
				into = append(into, p.v[n]-down*float32(i-y)-across*float32(k-x))
			}
		}
	}
	return into
}

// slope is half the middle difference of the samples ahead of one and behind it, in three lines that are aside apart. Bad samples do not count.
func (p plane) slope(at, ahead, aside int, bad []bool) float32 {
	var d [3]float32
	n := 0
	for _, k := range [...]int{at - aside, at, at + aside} {
		if !bad[k+ahead] && !bad[k-ahead] {
			d[n] = p.v[k+ahead] - p.v[k-ahead]
			n++
		}
	}
	switch n {
	case 0:
		return 0
	case len(d):
		return middle(d[0], d[1], d[2]) / 2
	}
	return (d[0] + d[1]) / float32(2*n)
}

// isolated returns the samples that lie far from all of their neighbours but one.
func (p plane) isolated() (found []int) {
	bad := make([]bool, len(p.v))
	var buffer [8]float32
	var deviations []float64
	for at := 0; at < len(p.v); at += photograph.SampleDistance {
		if n := p.neighbours(buffer[:0], at, bad); len(n) > 0 {
			deviations = append(deviations, math.Abs(float64(p.v[at]-median(n))))
		}
	}
	slices.Sort(deviations)
	limit := max(p.least, float32(photograph.Farthest*deviations[len(deviations)/2]/photograph.NormalMedian))
	for at, v := range p.v {
		if !p.usual(at, limit) && far(v, p.neighbours(buffer[:0], at, bad), limit) {
			found = append(found, at)
		}
	}
	seen := make([]bool, len(p.v))
	for last := found; len(last) > 0; {
		for _, at := range last {
			bad[at], seen[at] = true, true
		}
		var next []int // to those that are found no neighbours
		for _, at := range last {
			for i := max(0, at/p.width-1); i <= min(p.height-1, at/p.width+1); i++ {
				for k := max(0, at%p.width-1); k <= min(p.width-1, at%p.width+1); k++ {
					n := i*p.width + k
					if !seen[n] && far(p.v[n], p.neighbours(buffer[:0], n, bad), limit) {
						next, seen[n] = append(next, n), true
					}
				}
			}
		}
		if found, last = append(found, next...), next; float64(len(found)) > photograph.MostOutliers*float64(len(p.v)) {
			break
		}
	}
	return found
}

// peaks returns the samples that are black or white and far from all of their neighbours but one.
func (p plane) peaks() (found []int) {
	none, buffer := make([]bool, len(p.v)), [8]float32{}
	for at, v := range p.v {
		if end(v) != 0 && !p.usual(at, p.least) && far(v, p.neighbours(buffer[:0], at, none), p.least) {
			found = append(found, at)
		}
	}
	return found
}

// usual reports whether a sample is near four of its neighbours: it needs no closer look.
func (p plane) usual(at int, limit float32) bool {
	y, x, near := at/p.width, at%p.width, 0
	if y == 0 || y == p.height-1 || x == 0 || x == p.width-1 {
		return false
	}
	v := p.v[at]
	for _, n := range [8]float32{
		p.v[at-1], p.v[at+1], p.v[at-p.width], p.v[at+p.width],
		p.v[at-p.width-1], p.v[at-p.width+1], p.v[at+p.width-1], p.v[at+p.width+1],
	} {
		if d := n - v; -limit < d && d < limit {
			near++
		}
	}
	return near >= 4
}

// fill gives missing samples the median of their neighbours, from the border of a hole inwards.
func (p plane) fill(missing []bool) {
	var open []int
	for at, m := range missing {
		if m {
			open = append(open, at)
		}
	}
	var buffer [8]float32
	for len(open) > 0 {
		var next, done []int
		for _, at := range open {
			n := p.neighbours(buffer[:0], at, missing)
			if len(n) == 0 {
				next = append(next, at)
				continue
			}
			p.v[at] = median(n)
			done = append(done, at)
		}
		for _, at := range done {
			missing[at] = false
		}
		if open = next; len(done) == 0 {
			return
		}
	}
}

// far reports whether a sample lies far from all but one of its neighbours, which it sorts.
func far(v float32, neighbours []float32, limit float32) bool {
	const fewest = 4 // without both extremes
	alone := func() bool {
		near := 0
		for _, n := range neighbours {
			if d := n - v; -limit < d && d < limit {
				near++
			}
		}
		return near <= 1
	}
	if len(neighbours) < fewest || !alone() {
		return false
	}
	slices.Sort(neighbours)
	limit = max(limit, photograph.FarthestRange*(neighbours[len(neighbours)-2]-neighbours[1]))
	return alone()
}

// middle returns the median of three.
func middle(a, b, c float32) float32 { return max(min(a, b), min(max(a, b), c)) }

// median returns the upper median, and sorts the values.
func median(v []float32) float32 {
	slices.Sort(v)
	return v[len(v)/2]
}
