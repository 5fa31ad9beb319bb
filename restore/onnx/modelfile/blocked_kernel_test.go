package modelfile

import (
	"os"
	"slices"
	"testing"

	"ddiff/restore/onnx/infer"
)

// Weights are in the order of the layout's definition, for blocks of 8 and of 16 channels, also where channels are missing.
func TestBlockedKernel(t *testing.T) {
	t.Parallel()
	for _, c := range []int{8, 16} {
		for _, dims := range [][]int{{32, 48, 3, 3}, {c, c, 1, 1}, {20, 12, 3, 2}, {36, 20, 2, 2}, {c, 3, 3, 3}, {5, 32, 1, 3}} {
			out, in, high, wide := dims[0], dims[1], dims[2], dims[3]
			w := make([]float32, infer.Size(dims))
			for i := range w {
				w[i] = float32(i + 1)
			}
			at := func(o, i, y, x int) float32 {
				if o >= out || i >= in {
					return 0
				}
				return w[((o*in+i)*high+y)*wide+x]
			}
			outs, ins, inBlock := (out+c-1)/c*c, (in+c-1)/c*c, c
			if in < c {
				ins, inBlock = in, in
			}
			var want []float32
			for o := 0; o < outs; o += c {
				for i := 0; i < ins; i += inBlock {
					// A block of input channels has the pixels outside, a few input channels inside.
					visit := func(y, x, ii int) {
						for oo := range c {
							want = append(want, at(o+oo, i+ii, y, x))
						}
					}
					if in >= c {
						for p := range high * wide * c {
							visit(p/c/wide, p/c%wide, p%c)
						}
					} else {
						for p := range in * high * wide {
							visit(p/wide%high, p%wide, p/wide/high)
						}
					}
				}
			}
			k := blockedKernel(w, dims, c)
			if !slices.Equal(k.dims, []int{outs, ins, high, wide}) || !slices.Equal(k.data, want) {
				t.Errorf("%v in blocks of %d: dimensions %v, or another order", dims, c, k.dims)
			}
		}
	}
}

func TestFromHalf(t *testing.T) {
	t.Parallel()
	for bits, want := range map[uint16]float32{
		0: 0, 0x3c00: 1, 0xc000: -2, 0x3555: 0.333251953125, 1: 1.0 / (1 << 24), 0x83ff: -1023.0 / (1 << 24), 0x7bff: 65504, 0x0400: 1.0 / (1 << 14),
	} {
		if got := fromHalf(bits); got != want {
			t.Errorf("%#x is %v, want %v", bits, got, want)
		}
	}
	if x := fromHalf(0xfc00); x > -1e38 {
		t.Errorf("0xfc00 is %v, want -Inf", x)
	}
	if x := fromHalf(0x7e00); x == x {
		t.Errorf("0x7e00 is %v, want NaN", x)
	}
}

// bundled returns the score network of the bundled prior, prepared as by prior.Load.
func bundled(t *testing.T) *Model {
	t.Helper()
	data, err := os.ReadFile("../../prior/bundled/prior.onnx")
	if err != nil {
		t.Fatal(err)
	}
	m, err := ReadModel(data)
	if err != nil {
		t.Fatal(err)
	}
	m, _ = m.FuseGroupNorm()
	return m
}

// A model whose nodes are not in order stays as it is.
func TestBlockedOrder(t *testing.T) {
	t.Parallel()
	m := bundled(t)
	slices.Reverse(m.proto.Graph.Node)
	dims := map[string]infer.Value{"x": {DType: infer.Float, Dims: []int{2, 3, 32, 32}}, "t": {DType: infer.Int64, Dims: []int{2}}}
	if m.Blocked(8, dims) != m {
		t.Error("it was rewritten")
	}
}
