package infer

import (
	"maps"
	"slices"
)

// Window is the geometry of a convolution or a pooling over the spatial dimensions, one element per dimension.
type Window struct {
	Kernel, Stride, Dilation, Before, After []int
}

// WindowOf reads the attributes of a Conv or a pooling. in are the spatial sides of the input; kernel is nil if the
// attribute kernel_shape gives it.
func WindowOf(n *Node, in, kernel []int) (Window, error) {
	w, err := windowAttributes(n, len(in), kernel)
	if err != nil {
		return w, err
	}
	pad := n.Text("auto_pad", "NOTSET")
	for i, side := range in {
		switch pad {
		case "NOTSET":
			continue
		case "VALID":
			w.Before[i], w.After[i] = 0, 0
		case "SAME_UPPER", "SAME_LOWER":
			count := (side + w.Stride[i] - 1) / w.Stride[i]
			total := max((count-1)*w.Stride[i]+w.Reach(i)-side, 0)
			w.Before[i], w.After[i] = halves(total, pad)
		default:
			return w, n.Refuse("auto_pad %s", pad)
		}
	}
	return w, w.check(n)
}

// TransposedWindowOf reads the attributes of a ConvTranspose from spatial sides in to out.
func TransposedWindowOf(n *Node, in, out, kernel []int) (Window, error) {
	w, err := windowAttributes(n, len(in), kernel)
	if err != nil {
		return w, err
	}
	extra := n.list("output_padding", make([]int, len(in)))
	pad := n.Text("auto_pad", "NOTSET")
	shape := n.Integers("output_shape")
	if pad == "NOTSET" && shape == nil {
		return w, w.check(n)
	}
	for i := range in {
		total := w.Stride[i]*(in[i]-1) + extra[i] + w.Reach(i) - out[i]
		if pad == "VALID" && shape == nil {
			total = 0
		}
		w.Before[i], w.After[i] = halves(max(total, 0), pad)
	}
	return w, w.check(n)
}

func windowAttributes(n *Node, rank int, kernel []int) (Window, error) {
	if kernel == nil {
		kernel = n.Integers("kernel_shape")
	}
	pads := n.list("pads", make([]int, 2*rank))
	w := Window{
		Kernel: kernel, Stride: n.list("strides", ones(rank)), Dilation: n.list("dilations", ones(rank)),
	}
	if len(w.Kernel) != rank || len(w.Stride) != rank || len(w.Dilation) != rank || len(pads) != 2*rank {
		return w, n.Refuse("a window of %d dimensions over %d", len(w.Kernel), rank)
	}
	w.Before, w.After = slices.Clone(pads[:rank]), slices.Clone(pads[rank:])
	return w, nil
}

func (w Window) check(n *Node) error {
	for i := range w.Kernel {
		if w.Before[i] < 0 || w.After[i] < 0 {
			return n.Refuse("negative pads")
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

// Reach is the number of pixels from the first to the last one of a window in dimension i.
func (w Window) Reach(i int) int { return w.Dilation[i]*(w.Kernel[i]-1) + 1 }

// Rest returns the number of pixels, in each dimension, behind the last window over sides in that gives out outputs.
func (w Window) Rest(in, out []int) []int {
	rest := make([]int, len(in))
	for i := range in {
		rest[i] = in[i] + w.Before[i] + w.After[i] - w.Reach(i) - w.Stride[i]*(out[i]-1)
	}
	return rest
}

// Attributes encodes the geometry for a node.
func (w Window) Attributes(more map[string]any) map[string]any {
	out := map[string]any{
		"kernel_shape": w.Kernel, "strides": w.Stride, "dilations": w.Dilation, "pads": slices.Concat(w.Before, w.After),
	}
	maps.Copy(out, more)
	return out
}

// list returns an attribute, or its default.
func (n *Node) list(name string, otherwise []int) []int {
	if v := n.Integers(name); v != nil {
		return v
	}
	return otherwise
}

func ones(n int) []int { return slices.Repeat([]int{1}, n) }
