package prior

import (
	"fmt"
	"math"
)

// Grid divides images of one size into overlapping tiles, and fuses values that were computed for the tiles. It is immutable.
//
// Along an axis the tiles have equal lengths and are spread evenly, so that all neighbours share nearly equally many
// pixels. Each pixel is a weighted mean of the tiles that contain it. The weights of a pixel sum to one. Within the pixels
// that two neighbours share, a weight is 0 in the outer quarter, where a network sees the border of the tile,
// and then rises as sin². A pixel that only one tile contains has the weight 1 at the border of the image, too.
//
// A function of the neighbourhood of each pixel, such as a network of convolutions, therefore has the same values in tiles as on the
// whole image, if its radius is at most a quarter of the shared pixels.
type Grid struct {
	height, width int
	rows, cols    axis
}

// axis is the division of one axis.
type axis struct {
	side   int   // of each tile
	starts []int // of the tiles, ascending
	// weights has the weights of each tile, side numbers. Those of one position sum to one.
	weights [][]float32
}

// NewGrid divides images of height×width pixels into tiles, which begin at multiples. It returns the errors of [Tiling.Validate], and
// ErrTiling for an image whose sides are not multiples.
func NewGrid(t Tiling, height, width, multiple int) (*Grid, error) {
	if err := t.Validate(multiple); err != nil {
		return nil, err
	}
	if height < 1 || width < 1 || height%multiple != 0 || width%multiple != 0 {
		return nil, fmt.Errorf("%w: %d×%d pixels: both sides must be multiples of %d", ErrTiling, width, height, multiple)
	}
	if t.Side == 0 {
		t.Side = max(height, width)
	}
	return &Grid{height: height, width: width, rows: newAxis(height, t, multiple), cols: newAxis(width, t, multiple)}, nil
}

// newAxis places as few tiles as the overlap permits, evenly.
func newAxis(length int, t Tiling, multiple int) axis {
	a := axis{side: min(t.Side, length)}
	rest, step := length-a.side, t.Side-t.Overlap
	n := (rest+step-1)/step + 1
	for i := range n {
		start := 0
		if n > 1 {
			start = int(math.Round(float64(i)*float64(rest/multiple)/float64(n-1))) * multiple
		}
		a.starts = append(a.starts, start)
	}
	sum := make([]float64, length)
	raw := make([][]float64, n)
	for i, start := range a.starts {
		raw[i] = make([]float64, a.side)
		for k := range raw[i] {
			w := 1.0
			if i > 0 {
				w *= ramp(k, a.starts[i-1]+a.side-start)
			}
			if i < n-1 {
				w *= ramp(a.side-1-k, start+a.side-a.starts[i+1])
			}
			raw[i][k] = w
			sum[start+k] += w
		}
	}
	for i, start := range a.starts {
		w := make([]float32, a.side)
		for k := range w {
			w[k] = float32(raw[i][k] / sum[start+k])
		}
		a.weights = append(a.weights, w)
	}
	return a
}

// ramp is the weight of pixel k from the border of a tile, of which a neighbour shares the first pixels.
func ramp(k, shared int) float64 {
	margin := shared / 4
	switch width := shared - 2*margin; {
	case k < margin:
		return 0
	case k >= margin+width:
		return 1
	default:
		s := math.Sin(math.Pi / 2 * (float64(k-margin) + 0.5) / float64(width))
		return s * s
	}
}

// Len is the number of tiles of an image.
func (g *Grid) Len() int { return len(g.rows.starts) * len(g.cols.starts) }

// TileHeight and TileWidth are the sides of all tiles.
func (g *Grid) TileHeight() int { return g.rows.side }

// TileWidth is the width of all tiles.
func (g *Grid) TileWidth() int { return g.cols.side }

// at returns the row and the column of a tile in the grid.
func (g *Grid) at(tile int) (row, col int) {
	return tile / len(g.cols.starts), tile % len(g.cols.starts)
}

// Cut copies a tile of an image of planes [channels, height, width] to dst, [channels, TileHeight, TileWidth].
func (g *Grid) Cut(dst, image []float32, tile int) {
	row, col := g.at(tile)
	th, tw := g.rows.side, g.cols.side
	for c := range len(image) / (g.height * g.width) {
		for y := range th {
			from := (c*g.height+g.rows.starts[row]+y)*g.width + g.cols.starts[col]
			copy(dst[(c*th+y)*tw:][:tw], image[from:])
		}
	}
}

// Fuse adds the weighted values of a tile to an image of zeros. After all tiles, in any order, the image is fused; its rounding depends on the
// order.
func (g *Grid) Fuse(image, values []float32, tile int) {
	row, col := g.at(tile)
	th, tw := g.rows.side, g.cols.side
	across := g.cols.weights[col]
	for c := range len(image) / (g.height * g.width) {
		for y := range th {
			down := g.rows.weights[row][y]
			if down == 0 {
				continue
			}
			to := image[(c*g.height+g.rows.starts[row]+y)*g.width+g.cols.starts[col]:][:tw]
			from := values[(c*th+y)*tw:][:tw]
			for x, w := range across {
				to[x] += down * w * from[x]
			}
		}
	}
}
