package operator

import (
	"ddiff/restore/onnx"
	"ddiff/restore/parameter"
)

// Demosaic is the task of completing the colours behind a Bayer filter.
const Demosaic = "demosaic"

// demosaic is y = Σ_c m_c∘x_c, one channel: each pixel has the sample of one colour. In each square of 2×2 pixels one sample is red, the
// opposite one blue, and the others are green.
func demosaic() Definition {
	return Definition{
		Label: "Demosaicing", Doc: "one colour per pixel, behind a Bayer filter",
		Parameters: parameter.List{
			{Name: "red_row", Max: 1, Integer: true, Doc: "row of the red sample in each square of 2×2 pixels"},
			{Name: "red_column", Max: 1, Integer: true, Doc: "its column"},
		},
		Linear: true, Grey: true, Grid: true, Mosaic: true,
		Build: func(s Shape, p map[string]float64) (Expression, error) {
			b := newBayer(p)
			return Expression{
				Measurement: []int{1, s.Height, s.Width},
				Forward: func(g *onnx.Graph, x, _ onnx.Value) onnx.Value {
					return g.ReduceSum(g.Mul(x, b.mask(g, s)), 1)
				},
				Adjoint:  func(g *onnx.Graph, y, _ onnx.Value) onnx.Value { return g.Mul(y, b.mask(g, s)) },
				Baseline: func(y []float32) []float32 { return b.interpolate(y, s) },
			}, nil
		},
		SVD: func(s Shape, p map[string]float64) (*SVD, error) {
			b := newBayer(p)
			d := diagonalSVD(func(g *onnx.Graph, _ onnx.Value) onnx.Value { return b.mask(g, s) })
			d.Ut = func(g *onnx.Graph, y onnx.Value) onnx.Value { return g.Mul(y, b.mask(g, s)) }
			return d, nil
		},
	}
}

// bayer is a Bayer filter: the parities of the row and the column of the red samples.
type bayer struct{ row, column int }

func newBayer(p map[string]float64) bayer { return bayer{int(p["red_row"]), int(p["red_column"])} }

// channel returns the channel of the sample at a pixel.
func (b bayer) channel(row, column int) int {
	switch red, first := row%2 == b.row, column%2 == b.column; {
	case red && first:
		return 0
	case !red && !first:
		return 2
	}
	return 1
}

// mask returns 1 where a pixel has the sample of a channel, else 0, [1, 3, H, W]. It is computed from lines of pixels, so that a file has
// no constant of the size of an image.
func (b bayer) mask(g *onnx.Graph, s Shape) onnx.Value {
	// line has, for each channel, the indicator of the parity of red (1), of the other parity (−1), or 0.
	line := func(n, red int, which [colours]int, dims ...int) onnx.Value {
		data := make([]float32, colours*n)
		for c, of := range which {
			for i := range n {
				if of == 1 && i%2 == red || of == -1 && i%2 != red {
					data[c*n+i] = 1
				}
			}
		}
		return g.Const(data, dims...)
	}
	rows := func(which [colours]int) onnx.Value { return line(s.Height, b.row, which, 1, colours, s.Height, 1) }
	columns := func(which [colours]int) onnx.Value { return line(s.Width, b.column, which, 1, colours, 1, s.Width) }
	// Red, and green in the rows of red; blue, and green in the rows of blue.
	return g.Add(
		g.Mul(rows([colours]int{1, 1, 0}), columns([colours]int{1, -1, 0})),
		g.Mul(rows([colours]int{0, -1, -1}), columns([colours]int{0, 1, -1})),
	)
}

// interpolate completes the colours bilinearly: a missing value is the mean of the samples of its colour among the pixel's eight neighbours,
// those beside and above it with twice the weight of the diagonal ones. At the border the neighbours inside of the image count.
func (b bayer) interpolate(y []float32, s Shape) []float32 {
	h, w := s.Height, s.Width
	out := make([]float32, colours*h*w)
	for i := range h {
		for j := range w {
			var sum, weight [colours]float32
			for di := max(0, i-1); di <= min(h-1, i+1); di++ {
				for dj := max(0, j-1); dj <= min(w-1, j+1); dj++ {
					near := float32(1)
					if di == i || dj == j {
						near = 2
					}
					c := b.channel(di, dj)
					sum[c] += near * y[di*w+dj]
					weight[c] += near
				}
			}
			for c := range colours {
				out[(c*h+i)*w+j] = sum[c] / weight[c]
			}
			out[(b.channel(i, j)*h+i)*w+j] = y[i*w+j]
		}
	}
	return out
}
