package prior_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/prior"
)

func grid(t *testing.T, tiling prior.Tiling, height, width, multiple int) *prior.Grid {
	t.Helper()
	g, err := prior.NewGrid(tiling, height, width, multiple)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// fuse cuts an image into tiles, changes each with f, and fuses them.
func fuse(g *prior.Grid, image []float32, channels int, f func(v []float32)) []float32 {
	out := make([]float32, len(image))
	v := make([]float32, channels*g.TileHeight()*g.TileWidth())
	for k := range g.Len() {
		g.Cut(v, image, k)
		f(v)
		g.Fuse(out, v, k)
	}
	return out
}

// starts returns the first rows of the tiles of an image.
func starts(g *prior.Grid, height, width int) []int {
	image, part := make([]float32, height*width), make([]float32, g.TileHeight()*g.TileWidth())
	for i := range image {
		image[i] = float32(i / width)
	}
	var out []int
	for k := range g.Len() {
		g.Cut(part, image, k)
		out = append(out, int(part[0]))
	}
	return slices.Compact(out)
}

// TestWeights: the weights of every pixel sum to one, for sizes that are no multiple of the tile, and fusing the tiles of an image gives the image.
func TestWeights(t *testing.T) {
	t.Parallel()
	for _, multiple := range []int{1, 4, 8} {
		for _, tiling := range []prior.Tiling{{Side: 16}, {Side: 32, Overlap: 8}, {Side: 32, Overlap: 16}, {Side: 64, Overlap: 24}} {
			for length := 16; length <= 160; length += multiple * 3 {
				length = (length + multiple - 1) / multiple * multiple
				g := grid(t, tiling, length, 40, multiple)
				image := make([]float32, 2*length*40)
				for i := range image {
					image[i] = float32(math.Sin(float64(i)))
				}
				for i, v := range fuse(g, image, 2, func([]float32) {}) {
					if math.Abs(float64(v-image[i])) > 1e-6 {
						t.Fatalf("%+v, %d×40: element %d is %g after fusion, want %g", tiling, length, i, v, image[i])
					}
				}
				for _, r := range starts(g, length, 40) {
					if r%multiple != 0 || r+g.TileHeight() > length {
						t.Errorf("%+v, length %d: a tile begins at %d, want a multiple of %d at which it lies inside", tiling, length, r, multiple)
					}
				}
			}
		}
	}
}

// TestOverlap: neighbours share at least the overlap, and no tile could be left out.
func TestOverlap(t *testing.T) {
	t.Parallel()
	for length := 64; length < 1000; length += 8 {
		g := grid(t, prior.Tiling{Side: 64, Overlap: 16}, length, 64, 8)
		rows := starts(g, length, 64)
		for i := range len(rows) - 1 {
			if shared := rows[i] + 64 - rows[i+1]; shared < 16 {
				t.Errorf("length %d: neighbours share %d pixels", length, shared)
			}
		}
		if least := int(math.Ceil(float64(length-64)/48)) + 1; g.Len() != least {
			t.Errorf("length %d: %d tiles, want %d", length, g.Len(), least)
		}
	}
}

// TestLocal: a function of the neighbourhood, with zeros outside of each tile, has the values of the whole image if its radius is at most a
// quarter of the overlap, and other values if the radius is larger.
func TestLocal(t *testing.T) {
	t.Parallel()
	const h, w = 88, 120
	image := make([]float32, h*w)
	for i := range image {
		image[i] = float32(math.Sin(0.3*float64(i%w)) + math.Cos(0.2*float64(i/w)))
	}
	mean := func(height, width, radius int) func(v []float32) {
		return func(v []float32) {
			in := append([]float32(nil), v...)
			for i := range v {
				sum := 0.0
				for dy := -radius; dy <= radius; dy++ {
					for dx := -radius; dx <= radius; dx++ {
						if y, x := i/width+dy, i%width+dx; y >= 0 && y < height && x >= 0 && x < width {
							sum += float64(in[y*width+x])
						}
					}
				}
				v[i] = float32(sum)
			}
		}
	}
	g := grid(t, prior.Tiling{Side: 48, Overlap: 16}, h, w, 4)
	for radius, equal := range map[int]bool{1: true, 4: true, 9: false} {
		want := append([]float32(nil), image...)
		mean(h, w, radius)(want)
		worst := 0.0
		for i, v := range fuse(g, image, 1, mean(g.TileHeight(), g.TileWidth(), radius)) {
			worst = max(worst, math.Abs(float64(v-want[i])))
		}
		if (worst < 1e-3) != equal {
			t.Errorf("radius %d: differs from the whole image by %g", radius, worst)
		}
	}
}

// TestInvalid: a wrong side or overlap is refused with both and their bounds.
func TestInvalid(t *testing.T) {
	t.Parallel()
	for _, c := range []prior.Tiling{{Side: 8}, {Side: 60}, {Side: 64, Overlap: 40}, {Side: 64, Overlap: -8}, {Side: 64, Overlap: 20}, {Overlap: 8}} {
		_, err := prior.NewGrid(c, 128, 128, 8)
		want := fmt.Sprintf("tiles of %d pixels that share %d: the side must be at least 16", c.Side, c.Overlap)
		if !errors.Is(err, prior.ErrTiling) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	if _, err := prior.NewGrid(prior.Tiling{Side: 64}, 100, 128, 8); !errors.Is(err, prior.ErrTiling) {
		t.Errorf("a side of 100 pixels for a multiple of 8: %v", err)
	}
}

// TestDivides: only an image that is longer than a tile has several.
func TestDivides(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		side, height, width int
		want                bool
	}{{0, 999, 999, false}, {64, 64, 64, false}, {64, 8, 64, false}, {64, 64, 72, true}, {64, 72, 64, true}} {
		tiling := prior.Tiling{Side: c.side}
		if got := tiling.Divides(c.height, c.width); got != c.want || (grid(t, tiling, c.height, c.width, 1).Len() > 1) != got {
			t.Errorf("%+v: divides is %v", c, got)
		}
	}
}
