package operator

import (
	"fmt"
	"math"
	"slices"

	"ddiff/internal/restore/axis"
	"ddiff/restore/onnx"
	"ddiff/restore/parameter"
)

// PhaseRetrieval is the task of finding an image from the modulus of its Fourier transform.
const PhaseRetrieval = "phase_retrieval"

func phaseRetrieval() Definition {
	pad := func(side int, p map[string]float64) int { return int(float64(side) * p["oversample"] / 8) }
	return Definition{
		Label: "Phase retrieval", Doc: "modulus of the oversampled Fourier transform",
		Parameters: parameter.List{
			{Name: "oversample", Default: 2, Max: 8, Open: true, Doc: "padding of each side, in eighths of the image's side"},
			{Name: "signed", Integer: true, Max: 1, Doc: "1: the image in [-1, 1] is transformed, as in the code of DDiff's authors; 0: in [0, 1], as in DAPS"},
		},
		Dense:      1.5,
		NotPicture: true,
		Sensitive:  true,
		Ambiguous:  true,
		Build: func(s Shape, p map[string]float64) (Expression, error) {
			rows, cols := pad(s.Height, p), pad(s.Width, p)
			if rows < 1 || cols < 1 {
				return Expression{}, fmt.Errorf("%w oversample: %g adds no padding to %d×%d", ErrParam, p["oversample"], s.Width, s.Height)
			}
			f := &phase{newFourierBasis(s.Height, rows), newFourierBasis(s.Width, cols), p["signed"] == 1}
			// The largest modulus is that of white at frequency zero.
			top := float64(s.Height*s.Width) / math.Sqrt(float64(f.rows.m*f.cols.m))
			return Expression{
				Measurement: []int{s.Channels, f.rows.m, f.cols.m}, Forward: f.forward, Picture: logarithmic, Range: &Range{0, top},
				Short: f.short(s.Channels),
			}, nil
		},
		ImageSide: func(side int, p map[string]float64) int {
			// Sides are even, so the first that fits is the only one.
			for n := 2; n <= side; n += 2 {
				if n+2*pad(n, p) == side {
					return n
				}
			}
			return side
		},
	}
}

// phase is the modulus of the centred orthonormal Fourier transform of v/2 + 1/2, or of v if signed, padded
// with zeros on all sides. v and −v have one modulus: signed leaves the sign of the image open. The modulus does not depend on the origin of
// the transform. An origin at the centre of the image splits the transform into real cosine and sine products of the
// even and odd parts of each axis.
type phase struct {
	rows, cols *fourierBasis
	signed     bool
}

// fourierBasis has the cosines and sines of the frequencies 0..m/2 about the centre of n
// samples, for a transform of length m, [m/2+1, n/2] each.
type fourierBasis struct {
	m        int
	cos, sin *axis.Matrix
}

func newFourierBasis(n, pad int) *fourierBasis {
	m := n + 2*pad
	norm := 1 / math.Sqrt(float64(m))
	angle := func(k, i int) float64 {
		return 2 * math.Pi * float64(k) * (float64(i) - float64(n-1)/2) / float64(m)
	}
	return &fourierBasis{
		m:   m,
		cos: axis.Fill(m/2+1, n/2, func(k, i int) float64 { return norm * math.Cos(angle(k, i)) }),
		sin: axis.Fill(m/2+1, n/2, func(k, i int) float64 { return norm * math.Sin(angle(k, i)) }),
	}
}

func (o *phase) forward(g *onnx.Graph, x, _ onnx.Value) onnx.Value {
	same, cross := o.moduli(g, x)

	// Frequencies −m/2..m/2−1 along each axis.
	negative := func(v onnx.Value, axis, m int) onnx.Value { return g.Reverse(g.Slice(v, axis, 1, m/2+1), axis) }
	positive := func(v onnx.Value, axis, m int) onnx.Value { return g.Slice(v, axis, 0, m/2) }
	row := func(left, right onnx.Value) onnx.Value {
		return g.Concat(axis.Cols, negative(left, axis.Cols, o.cols.m), positive(right, axis.Cols, o.cols.m))
	}
	return g.Concat(axis.Rows,
		negative(row(same, cross), axis.Rows, o.rows.m),
		positive(row(cross, same), axis.Rows, o.rows.m))
}

// moduli returns the moduli at the frequencies 0..m/2 of rows and columns: those of a row and a column of the same sign, and of opposite signs.
func (o *phase) moduli(g *onnx.Graph, x onnx.Value) (same, cross onnx.Value) {
	if !o.signed {
		half := g.Scalar(0.5)
		x = g.Add(g.Mul(x, half), half)
	}
	e, d := axis.Split(g, x, axis.Rows)
	// X(k, l) = (P − iQ)(C − iS) with the row transforms P (cosine) and Q (sine).
	parts := func(v onnx.Value) (c, s onnx.Value) {
		even, odd := axis.Split(g, v, axis.Cols)
		return o.cols.cos.Along(g, even, axis.Cols), o.cols.sin.Along(g, odd, axis.Cols)
	}
	pc, ps := parts(o.rows.cos.Along(g, e, axis.Rows))
	qc, qs := parts(o.rows.sin.Along(g, d, axis.Rows))
	modulus := func(re, im onnx.Value) onnx.Value {
		return g.Sqrt(g.Add(g.Mul(re, re), g.Mul(im, im)))
	}
	return modulus(g.Minus(pc, qs), g.Add(qc, ps)), modulus(g.Add(pc, qs), g.Minus(qc, ps))
}

// short has a row for the frequencies 0..m/2 of the columns with each of the rows, first those of equal signs, then those of opposite signs. The transform of real
// values has most moduli twice: two entries of y become their sum over √2. The differences of two over √2, to which A contributes nothing, become their norm, the first
// entry of a last row.
func (o *phase) short(channels int) *Coordinates {
	rows, cols := o.rows.m/2+1, o.cols.m/2+1
	return &Coordinates{
		Dims: []int{channels, 2*rows + 1, cols},
		Of: func(y []float32) []float32 {
			var out []float32
			for channel := range slices.Chunk(y, o.rows.m*o.cols.m) {
				out = append(out, o.shorten(channel)...)
			}
			return out
		},
		Forward: func(g *onnx.Graph, x, _ onnx.Value) onnx.Value {
			weights := o.shorten(slices.Repeat([]float32{1}, o.rows.m*o.cols.m)) // those of one or two equal entries of y
			same, cross := o.moduli(g, x)
			return g.Concat(axis.Rows,
				g.Mul(same, g.Const(weights[:rows*cols], rows, cols)), g.Mul(cross, g.Const(weights[rows*cols:2*rows*cols], rows, cols)),
				g.Expand(g.Scalar(0), x.Dims[0], channels, 1, cols))
		},
	}
}

// shorten returns a channel of y in the coordinates of short.
func (o *phase) shorten(y []float32) []float32 {
	rows, cols := o.rows.m/2+1, o.cols.m/2+1
	out, squares := make([]float32, (2*rows+1)*cols), 0.0
	o.entries(func(at, first, second int) {
		switch {
		case first >= 0 && second >= 0:
			u, v := float64(y[first]), float64(y[second])
			out[at] = float32((u + v) / math.Sqrt2)
			squares += (u - v) * (u - v) / 2
		case max(first, second) >= 0:
			out[at] = y[max(first, second)]
		}
	})
	out[2*rows*cols] = float32(math.Sqrt(squares))
	return out
}

// entries calls visit for all entries of a channel in the coordinates of short, but for the last row, with the two entries of a channel of y that have its modulus, −1 for
// one that there is not.
func (o *phase) entries(visit func(at, first, second int)) {
	height, width := o.rows.m/2, o.cols.m/2
	place := func(exists bool, k, l int) int {
		if !exists {
			return -1
		}
		return (k+height)*o.cols.m + l + width
	}
	for k := range height + 1 {
		for l := range width + 1 {
			at := k*(width+1) + l
			visit(at, place(k < height && l < width, k, l), place(k > 0 && l > 0, -k, -l))
			visit(at+(height+1)*(width+1), place(k < height && l > 0, k, -l), place(k > 0 && l < width, -k, l))
		}
	}
}

// logarithmic compresses moduli into [−1, 1].
func logarithmic(y []float32) []float32 {
	top := float32(1e-6)
	for _, v := range y {
		top = max(top, v)
	}
	scale := 2 / math.Log1p(100)
	out := make([]float32, len(y))
	for i, v := range y {
		out[i] = float32(scale*math.Log1p(100*float64(max(v, 0)/top)) - 1)
	}
	return out
}
