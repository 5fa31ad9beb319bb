package onnx

import "slices"

// window is the geometry of a convolution or a pooling over the spatial dimensions, one element per dimension.
type window struct {
	kernel, stride, dilation, before, after []int
}

// windowOf reads the attributes of a Conv or a pooling. in are the spatial sides of the input; kernel is nil if the
// attribute kernel_shape gives it.
func windowOf(n *node, in, kernel []int) (window, error) {
	w, err := windowAttributes(n, len(in), kernel)
	if err != nil {
		return w, err
	}
	pad := n.text("auto_pad", "NOTSET")
	for i, side := range in {
		switch pad {
		case "NOTSET":
			continue
		case "VALID":
			w.before[i], w.after[i] = 0, 0
		case "SAME_UPPER", "SAME_LOWER":
			count := (side + w.stride[i] - 1) / w.stride[i]
			total := max((count-1)*w.stride[i]+w.reach(i)-side, 0)
			w.before[i], w.after[i] = halves(total, pad)
		default:
			return w, n.refuse("auto_pad %s", pad)
		}
	}
	return w, w.check(n)
}

// transposedWindowOf reads the attributes of a ConvTranspose from spatial sides in to out.
func transposedWindowOf(n *node, in, out, kernel []int) (window, error) {
	w, err := windowAttributes(n, len(in), kernel)
	if err != nil {
		return w, err
	}
	extra := n.list("output_padding", make([]int, len(in)))
	pad := n.text("auto_pad", "NOTSET")
	shape := n.integers("output_shape")
	if pad == "NOTSET" && shape == nil {
		return w, w.check(n)
	}
	for i := range in {
		total := w.stride[i]*(in[i]-1) + extra[i] + w.reach(i) - out[i]
		if pad == "VALID" && shape == nil {
			total = 0
		}
		w.before[i], w.after[i] = halves(max(total, 0), pad)
	}
	return w, w.check(n)
}

func windowAttributes(n *node, rank int, kernel []int) (window, error) {
	if kernel == nil {
		kernel = n.integers("kernel_shape")
	}
	pads := n.list("pads", make([]int, 2*rank))
	w := window{
		kernel: kernel, stride: n.list("strides", ones(rank)), dilation: n.list("dilations", ones(rank)),
	}
	if len(w.kernel) != rank || len(w.stride) != rank || len(w.dilation) != rank || len(pads) != 2*rank {
		return w, n.refuse("a window of %d dimensions over %d", len(w.kernel), rank)
	}
	w.before, w.after = slices.Clone(pads[:rank]), slices.Clone(pads[rank:])
	return w, nil
}

func (w window) check(n *node) error {
	for i := range w.kernel {
		if w.before[i] < 0 || w.after[i] < 0 {
			return n.refuse("negative pads")
		}
	}
	return nil
}

// halves splits padding; SAME_UPPER gives the odd pixel to the end, others to the start.
func halves(total int, pad string) (before, after int) {
	if pad == "SAME_UPPER" {
		return total / 2, total - total/2
	}
	return total - total/2, total / 2
}

// reach is the number of pixels from the first to the last one of a window in dimension i.
func (w window) reach(i int) int { return w.dilation[i]*(w.kernel[i]-1) + 1 }

// rest returns the number of pixels, in each dimension, behind the last window over sides in that gives out outputs.
func (w window) rest(in, out []int) []int {
	rest := make([]int, len(in))
	for i := range in {
		rest[i] = in[i] + w.before[i] + w.after[i] - w.reach(i) - w.stride[i]*(out[i]-1)
	}
	return rest
}

// attributes encodes the geometry for a node.
func (w window) attributes(more map[string]any) map[string]any {
	out := map[string]any{
		"kernel_shape": w.kernel, "strides": w.stride, "dilations": w.dilation, "pads": slices.Concat(w.before, w.after),
	}
	for k, v := range more {
		out[k] = v
	}
	return out
}

// list returns an attribute, or its default.
func (n *node) list(name string, otherwise []int) []int {
	if v := n.integers(name); v != nil {
		return v
	}
	return otherwise
}

func ones(n int) []int { return slices.Repeat([]int{1}, n) }
