package job

import (
	"fmt"
	"math"
	"slices"

	"ddiff/restore/item"
	"ddiff/restore/operator"
	"ddiff/restore/raster"
)

const (
	// farthest is the distance of a dead or hot sample from all but one of its neighbours, in deviations of a sample from the median of its neighbours,
	// leastFar a lower bound, and farthestRange the distance in ranges of the neighbours without their extremes: the peak of a point that a Gaussian of 1.5 pixels blurred has 1.25.
	farthest      = 5
	leastFar      = 0.15
	farthestRange = 1.4
	// outlierRounds is the number of searches: what is found is no neighbour of the next one.
	outlierRounds = 3
	// mostOutliers is the share of samples above which they belong to the picture.
	mostOutliers = 0.1
	// normalMedian is the median of the absolute value of a normal deviate.
	normalMedian = 0.6745
	// sampled is the distance of samples from which the deviation is estimated.
	sampled = 7
)

// replaceOutliers replaces the dead and hot samples of a stored picture by the median of their neighbours, for tasks whose solver would explain them by the content of
// the picture: those of blurs, in whose pictures nothing is as sharp. It returns a copy if there are any.
func (j *Job) replaceOutliers(seen *raster.Image) *raster.Image {
	switch j.Item.Task {
	case operator.GaussianDeblur, operator.MotionDeblur, operator.NonlinearDeblur:
	default:
		return seen
	}
	out := seen.Clone()
	found := 0
	for c := range out.Channels {
		found += replaceIn(out.Plane(c), out.Height, out.Width)
	}
	all := len(out.Pix)
	if found == 0 || float64(found) > mostOutliers*float64(all) {
		return seen
	}
	j.warn(item.WarnPixels, fmt.Sprintf("%d samples (%.2g %%) lie far from all of their neighbours, as those of dead and hot pixels: the median of the neighbours replaced them; --task denoise keeps them",
		found, 100*float64(found)/float64(all)))
	return out
}

// replaceIn is replaceOutliers for a channel. It returns the number of samples.
func replaceIn(v []float32, height, width int) (found int) {
	bad := make([]bool, len(v))
	// Neighbours are without the slope of the picture, so that edges count as flat.
	neighbours := func(into []float32, at int, good bool) []float32 {
		into = into[:0]
		y, x := at/width, at%width
		var down, across float32
		if y > 0 && y < height-1 && x > 0 && x < width-1 {
			down = middle(v[at+width-1]-v[at-width-1], v[at+width]-v[at-width], v[at+width+1]-v[at-width+1]) / 2
			across = middle(v[at-width+1]-v[at-width-1], v[at+1]-v[at-1], v[at+width+1]-v[at+width-1]) / 2
		}
		for i := max(0, y-1); i <= min(height-1, y+1); i++ {
			for k := max(0, x-1); k <= min(width-1, x+1); k++ {
				if n := i*width + k; n != at && (!good || !bad[n]) {
					into = append(into, v[n]-down*float32(i-y)-across*float32(k-x))
				}
			}
		}
		return into
	}
	var buffer [8]float32
	var deviations []float64
	for at := 0; at < len(v); at += sampled {
		if n := neighbours(buffer[:], at, false); len(n) > 0 {
			deviations = append(deviations, math.Abs(float64(v[at]-median(n))))
		}
	}
	if len(deviations) == 0 {
		return 0
	}
	slices.Sort(deviations)
	limit := float32(max(leastFar, farthest*deviations[len(deviations)/2]/normalMedian))
	for range outlierRounds {
		var some []int
		for at := range v {
			if n := neighbours(buffer[:], at, true); !bad[at] && far(v[at], n, limit) {
				some = append(some, at)
			}
		}
		for _, at := range some {
			bad[at] = true
		}
		found += len(some)
		if len(some) == 0 {
			break
		}
	}
	if float64(found) > mostOutliers*float64(len(v)) {
		return found
	}
	for at := range v {
		if bad[at] {
			if n := neighbours(buffer[:], at, true); len(n) > 0 {
				v[at] = median(n)
			}
		}
	}
	return found
}

// far reports whether a sample lies far from all but one of its neighbours, which it sorts.
func far(v float32, neighbours []float32, limit float32) bool {
	const fewest = 4 // without both extremes
	if len(neighbours) < fewest {
		return false
	}
	slices.Sort(neighbours)
	limit = max(limit, farthestRange*(neighbours[len(neighbours)-2]-neighbours[1]))
	near := 0
	for _, n := range neighbours {
		if d := n - v; -limit < d && d < limit {
			near++
		}
	}
	return near <= 1
}

// middle returns the median of three.
func middle(a, b, c float32) float32 { return max(min(a, b), min(max(a, b), c)) }

// median returns the upper median, and sorts the values.
func median(v []float32) float32 {
	slices.Sort(v)
	return v[len(v)/2]
}
