package operator

import (
	"fmt"
	"math"

	"ddiff/internal/restore/axis"
	"ddiff/internal/restore/raster"
	"ddiff/restore/onnx"
	"ddiff/restore/parameter"
)

// JPEG is the task of undoing JPEG compression.
const JPEG = "jpeg"

// The values of the parameter subsampling. The numbers are those of Pillow.
const (
	chroma444 = 0 // chroma has the size of luma
	chroma422 = 1 // half the width
	chroma420 = 2 // half the width and half the height
)

// block is the side of the blocks of a JPEG file.
const block = 8

// jpegCopies bounds the copies of an image that the codec and its smooth form need: 22 were measured.
const jpegCopies = 24

// jpegTask is y = decode(quantise(encode(x))): conversion to YCbCr, mean of 2×2 or 2×1 chroma samples, DCT of blocks of 8×8, rounding
// to multiples of the table's entries, and the way back, on which chroma samples are repeated.
//
// The gradient is that of the expression without the rounding and without the limits of samples (straight-through): the
// DCT cancels, and the gradient of the residual r = y − A(x) is r, with chroma averaged over its samples. r is zero at each coefficient
// that lies in the cell of y.
func jpegTask() Definition {
	return Definition{
		Label: "JPEG artifacts", Doc: "JPEG compression at a quality of the IJG's tables",
		Parameters: parameter.List{
			{Name: "quality", Default: 10, Min: 1, Max: 100, Integer: true, Doc: "quality of the quantisation tables, as libjpeg has it"},
			{Name: "subsampling", Default: chroma420, Max: chroma420, Integer: true, Doc: "samples of chroma: 0 is 4:4:4, 1 is 4:2:2, 2 is 4:2:0"},
		},
		Coloured: true, Grid: true,
		Stated: statedByJPEG, Doubt: doubtJPEG,
		Build: func(s Shape, p map[string]float64) (Expression, error) {
			if s.Channels != 1 && s.Channels != 3 {
				return Expression{}, fmt.Errorf("%w: %d channels, JPEG compression is for grey images and for red, green and blue", ErrShape, s.Channels)
			}
			c := newJPEGCodec(int(p["quality"]), int(p["subsampling"]))
			return Expression{
				Copies: jpegCopies,
				Forward: func(g *onnx.Graph, x, _ onnx.Value) onnx.Value {
					linear := c.apply(g, x, smooth)
					return g.Add(linear, g.Detach(g.Minus(c.apply(g, x, file), linear)))
				},
				Smooth:   func(g *onnx.Graph, x, _ onnx.Value) onnx.Value { return c.apply(g, x, smooth) },
				Proximal: c.proximal,
			}, nil
		},
	}
}

// jpegCodec is a JPEG encoder with a decoder, without the entropy coding.
type jpegCodec struct {
	luma, chroma *axis.Matrix // quantisation steps [8, 8], in levels of 255
	down, across int          // factors between the samples of luma and of chroma
}

func newJPEGCodec(quality, subsampling int) *jpegCodec {
	luma, chroma := jpegTables(quality)
	steps := func(table [block * block]uint8) *axis.Matrix {
		return axis.Fill(block, block, func(i, j int) float64 { return float64(table[i*block+j]) })
	}
	c := &jpegCodec{luma: steps(luma), chroma: steps(chroma), down: 1, across: 1}
	if subsampling >= chroma422 {
		c.across = 2
	}
	if subsampling >= chroma420 {
		c.down = 2
	}
	return c
}

// Matrices of JFIF (Rec. ITU-T T.871) between red, green, blue in [−1, 1] and luma, chroma in levels about 128.
func jpegFromRGB() *axis.Matrix {
	const r, g, b = 0.299, 0.587, 0.114
	return scaledMatrix(127.5, []float64{
		r, g, b,
		-r / (2 - 2*b), -g / (2 - 2*b), 0.5,
		0.5, -g / (2 - 2*r), -b / (2 - 2*r),
	})
}

func jpegToRGB() *axis.Matrix {
	const r, g, b = 0.299, 0.587, 0.114
	return scaledMatrix(1/127.5, []float64{
		1, 0, 2 - 2*r,
		1, -b * (2 - 2*b) / g, -r * (2 - 2*r) / g,
		1, 2 - 2*b, 0,
	})
}

func scaledMatrix(by float64, values []float64) *axis.Matrix {
	return axis.Fill(3, 3, func(i, j int) float64 { return by * values[3*i+j] })
}

// lumaOffset is luma about 128 at x = 0, which is level 127.5.
const lumaOffset = -0.5

// form is what a codec does with the values of a file.
type form int

const (
	smooth    form = iota // nothing, which leaves the loss of chroma samples
	unlimited             // rounds coefficients
	file                  // rounds coefficients, and limits samples to 8 bits
)

// apply builds the codec for x [N, 3, H, W].
func (c *jpegCodec) apply(g *onnx.Graph, x onnx.Value, f form) onnx.Value {
	if x.Dims[1] == 1 {
		return c.applyGrey(g, x, f)
	}
	n, h, w := x.Dims[0], x.Dims[2], x.Dims[3]
	ycc := c.ycc(g, x)
	if f != smooth {
		ycc = rounded(g, ycc, 0.5)
	}
	luma, chroma := g.Slice(ycc, 1, 0, 1), c.shrink(g, g.Slice(ycc, 1, 1, 3))
	if f != smooth {
		chroma = c.roundMeans(g, chroma)
		luma, chroma = quantiseBlocks(g, luma, c.luma, f), quantiseBlocks(g, chroma, c.chroma, f)
	}
	ycc = g.Concat(1, luma, c.enlarge(g, chroma))
	y := g.Reshape(g.MatMul(jpegToRGB().Value(g), g.Minus(g.Reshape(ycc, n, 3, h*w), yccOffset(g))), n, 3, h, w)
	if f == file {
		y = toLevels(g, y)
	}
	return y
}

// ycc is luma and chroma of x [N, 3, H, W], in levels about 128.
func (c *jpegCodec) ycc(g *onnx.Graph, x onnx.Value) onnx.Value {
	v := g.MatMul(jpegFromRGB().Value(g), g.Reshape(x, x.Dims[0], 3, x.Dims[2]*x.Dims[3]))
	return g.Reshape(g.Add(v, yccOffset(g)), x.Dims...)
}

func yccOffset(g *onnx.Graph) onnx.Value { return g.Const([]float32{lumaOffset, 0, 0}, 3, 1) }

// applyGrey is apply for one channel, which is luma.
func (c *jpegCodec) applyGrey(g *onnx.Graph, x onnx.Value, f form) onnx.Value {
	if f == smooth {
		return x
	}
	luma := quantiseBlocks(g, rounded(g, greyLevels(g, x), 0.5), c.luma, f)
	y := g.Mul(g.Minus(luma, g.Scalar(lumaOffset)), g.Scalar(1/127.5))
	if f == file {
		y = toLevels(g, y)
	}
	return y
}

// greyLevels is luma of x [N, 1, H, W], in levels about 128.
func greyLevels(g *onnx.Graph, x onnx.Value) onnx.Value {
	return g.Add(g.Mul(x, g.Scalar(127.5)), g.Scalar(lumaOffset))
}

// rounded is floor(v + bias).
func rounded(g *onnx.Graph, v onnx.Value, bias float32) onnx.Value {
	return g.Apply("Floor", v.DType, v.Dims, nil, g.Add(v, g.Scalar(bias)))
}

// roundMeans rounds means of two or four samples as libjpeg does: the bias alternates from column to column, so that halves are rounded down and up equally often.
func (c *jpegCodec) roundMeans(g *onnx.Graph, v onnx.Value) onnx.Value {
	if c.down*c.across == 1 {
		return v
	}
	w := v.Dims[3]
	bias := axis.Fill(1, w, func(_, j int) float64 { return 0.25*float64(c.down-1) + float64(j%2)*0.5/float64(c.down) })
	return g.Apply("Floor", v.DType, v.Dims, nil, g.Add(v, g.Const(bias.Data, 1, 1, 1, w)))
}

// toLevels rounds x in [−1, 1] to 256 levels and limits it.
func toLevels(g *onnx.Graph, x onnx.Value) onnx.Value {
	p := g.Clip(rounded(g, g.Add(g.Mul(x, g.Scalar(127.5)), g.Scalar(127.5)), 0.5), 0, 255)
	return g.Add(g.Mul(p, g.Scalar(1/127.5)), g.Scalar(-1))
}

// shrink is the mean over the luma samples of each chroma sample.
func (c *jpegCodec) shrink(g *onnx.Graph, v onnx.Value) onnx.Value {
	n, k, h, w := v.Dims[0], v.Dims[1], v.Dims[2]/c.down, v.Dims[3]/c.across
	if c.down*c.across == 1 {
		return v
	}
	sum := g.ReduceSum(g.Reshape(v, n*k, h, c.down, w, c.across), 2, 4)
	return g.Mul(g.Reshape(sum, n, k, h, w), g.Scalar(1/float32(c.down*c.across)))
}

// enlarge repeats chroma samples.
func (c *jpegCodec) enlarge(g *onnx.Graph, v onnx.Value) onnx.Value {
	n, k, h, w := v.Dims[0], v.Dims[1], v.Dims[2], v.Dims[3]
	if c.down*c.across == 1 {
		return v
	}
	return g.Reshape(g.Expand(g.Reshape(v, n*k, h, 1, w, 1), n*k, h, c.down, w, c.across), n, k, h*c.down, w*c.across)
}

// tie rounds halves away from zero, as libjpeg does, also where float32 has lost a few units of the last place.
const tie = 0.5 + 1e-4

// quantiseBlocks rounds the DCT coefficients of the blocks of v [N, C, H, W], and limits the samples to 8 bits in the form file.
func quantiseBlocks(g *onnx.Graph, v onnx.Value, steps *axis.Matrix, f form) onnx.Value {
	h, w := v.Dims[2], v.Dims[3]
	t, q := newBlockTransform(g, v), g.Const(steps.Data, block, 1, block)
	v = t.inverse(g.Mul(roundedAway(g, g.Div(t.forward(v), q)), q))
	if f == file {
		v = g.Clip(rounded(g, v, 0.5), -128, 127)
	}
	return cropped(g, cropped(g, v, axis.Rows, h), axis.Cols, w)
}

// roundedAway rounds f, halves away from zero. Sign is not used: WebGPU does not compute it.
func roundedAway(g *onnx.Graph, f onnx.Value) onnx.Value {
	positive := func(f onnx.Value) onnx.Value { // f rounded where it is above 0, else 0
		return g.Apply("Relu", f.DType, f.Dims, nil, rounded(g, f, tie))
	}
	return g.Minus(positive(f), positive(g.Neg(f)))
}

// blockTransform is the DCT of the blocks of samples [N, C, H, W]. Incomplete blocks are completed with copies of the last row and column.
type blockTransform struct {
	g      *onnx.Graph
	basis  *axis.Matrix
	dims   []int // of complete blocks
	planes int
}

func newBlockTransform(g *onnx.Graph, v onnx.Value) blockTransform {
	basis := axis.Fill(block, block, func(k, i int) float64 {
		scale := math.Sqrt(2. / block)
		if k == 0 {
			scale = math.Sqrt(1. / block)
		}
		return scale * math.Cos(math.Pi*(float64(i)+0.5)*float64(k)/block)
	})
	up := func(n int) int { return (n + block - 1) / block * block }
	return blockTransform{
		g: g, basis: basis, dims: []int{v.Dims[0], v.Dims[1], up(v.Dims[2]), up(v.Dims[3])}, planes: v.Dims[0] * v.Dims[1],
	}
}

// forward returns the coefficients of samples, [planes·rows, 8, columns, 8] with the numbers of rows and columns of blocks.
func (t blockTransform) forward(v onnx.Value) onnx.Value {
	v = completed(t.g, completed(t.g, v, axis.Rows), axis.Cols)
	f := t.both(v, t.basis, t.basis.Transposed())
	return t.g.Reshape(f, t.planes*t.dims[2]/block, block, t.dims[3]/block, block)
}

// inverse returns the samples of complete blocks.
func (t blockTransform) inverse(f onnx.Value) onnx.Value {
	return t.g.Reshape(t.both(f, t.basis.Transposed(), t.basis), t.dims...)
}

// both is left·B·right of each block B.
func (t blockTransform) both(v onnx.Value, left, right *axis.Matrix) onnx.Value {
	rows, cols := t.dims[2], t.dims[3]
	v = t.g.MatMul(left.Value(t.g), t.g.Reshape(v, t.planes*rows/block, block, cols))
	return t.g.MatMul(t.g.Reshape(v, t.planes*rows*cols/block, block), right.Value(t.g))
}

// completed repeats the end of an axis up to a multiple of the block.
func completed(g *onnx.Graph, v onnx.Value, axis int) onnx.Value {
	n := v.Dims[axis]
	missing := (block - n%block) % block
	if missing == 0 {
		return v
	}
	dims := append([]int(nil), v.Dims...)
	dims[axis] = missing
	return g.Concat(axis, v, g.Expand(g.Slice(v, axis, n-1, n), dims...))
}

// cropped returns the first n elements of an axis.
func cropped(g *onnx.Graph, v onnx.Value, axis, n int) onnx.Value {
	if v.Dims[axis] == n {
		return v
	}
	return g.Slice(v, axis, 0, n)
}

// The tables of Rec. ITU-T T.81, annex K, row by row. They are those of quality 50.
func annexK() (luma, chroma [block * block]int) {
	luma = [block * block]int{
		16, 11, 10, 16, 24, 40, 51, 61,
		12, 12, 14, 19, 26, 58, 60, 55,
		14, 13, 16, 24, 40, 57, 69, 56,
		14, 17, 22, 29, 51, 87, 80, 62,
		18, 22, 37, 56, 68, 109, 103, 77,
		24, 35, 55, 64, 81, 104, 113, 92,
		49, 64, 78, 87, 103, 121, 120, 101,
		72, 92, 95, 98, 112, 100, 103, 99,
	}
	for i := range chroma {
		chroma[i] = 99
	}
	for i, row := range [][]int{{17, 18, 24, 47}, {18, 21, 26, 66}, {24, 26, 56}, {47, 66}} {
		copy(chroma[i*block:], row)
	}
	return luma, chroma
}

// jpegTables returns the quantisation tables of a quality from 1 to 100 as the Independent JPEG Group's encoder computes them, row
// by row.
func jpegTables(quality int) (luma, chroma [block * block]uint8) {
	scale := 200 - 2*quality
	if quality < 50 {
		scale = 5000 / quality
	}
	l, c := annexK()
	for i := range l {
		luma[i] = uint8(min(max((l[i]*scale+50)/100, 1), 255))
		chroma[i] = uint8(min(max((c[i]*scale+50)/100, 1), 255))
	}
	return luma, chroma
}

// statedByJPEG reads quality and subsampling of a JPEG file.
func statedByJPEG(file []byte) (Stated, error) {
	if !raster.IsJPEG(file) {
		return Stated{Missing: []string{"quality"}}, nil
	}
	h, err := raster.ReadJPEGHeader(file)
	if err != nil {
		return Stated{}, fmt.Errorf("%w quality: %w", ErrParam, err)
	}
	quality, equal := nearestQuality(h.Luma, h.Chroma)
	subsampling := chroma444
	switch {
	case h.Across == 1 && h.Down == 1:
	case h.Across == 2 && h.Down == 1:
		subsampling = chroma422
	case h.Across == 2 && h.Down == 2:
		subsampling = chroma420
	default:
		return Stated{}, fmt.Errorf("%w subsampling: the file has a chroma sample for %d×%d pixels, the task has 4:4:4, 4:2:2 and 4:2:0; give it as PNG with a quality", ErrParam, h.Across, h.Down)
	}
	s := Stated{Params: map[string]float64{"quality": float64(quality), "subsampling": float64(subsampling)}}
	if !equal {
		s.Inexact = fmt.Sprintf("the quantisation tables of the file are not those of a quality; the nearest is %d", quality)
	}
	return s, nil
}

// doubtJPEG doubts a picture that no compression with the stated tables leaves.
func doubtJPEG(p map[string]float64, residual float64) string {
	// most is the root mean square of y − A(x) above which the tables are not the stated ones: it was 0.017 at most with the right ones, and 0.1 at least with
	// quality 10 in place of 50.
	const most, levels = 0.032, 255. / 2 // levels of a unit
	if residual <= most*most {
		return ""
	}
	return fmt.Sprintf("JPEG of quality %g leaves no such picture, by %.2g levels: state the quality of its first compression, or a higher one, and give it neither cropped nor scaled",
		p["quality"], math.Sqrt(residual)*levels)
}

// nearestQuality returns the quality whose tables are nearest to those of a file, by the mean absolute logarithm of the ratio of
// entries, and whether they are equal. chroma is nil for a grey file. Of qualities with equal tables it is the highest.
func nearestQuality(luma []uint16, chroma [][]uint16) (quality int, equal bool) {
	least := math.Inf(1)
	for q := 100; q >= 1; q-- {
		l, c := jpegTables(q)
		d := tableDistance(luma, l)
		for _, table := range chroma {
			d += tableDistance(table, c)
		}
		if d < least {
			least, quality = d, q
		}
	}
	return quality, least == 0
}

func tableDistance(a []uint16, b [block * block]uint8) float64 {
	d := 0.0
	for i, v := range a {
		d += math.Abs(math.Log(float64(v) / float64(b[i])))
	}
	return d
}
