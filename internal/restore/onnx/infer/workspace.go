package infer

// bytesOf is the size of an element of a type; of a type that no rule has, that of the largest.
func bytesOf(t DType) float64 {
	switch t {
	case Bool:
		return 1
	case Float16:
		return 2
	case Float, Int32:
		return 4
	}
	return 8
}

// Bytes estimates the memory of a node in bytes: that of its outputs, and of the buffers that ONNX Runtime's CPU kernels make for the time of a call.
func (n *Node) Bytes() (sum float64) {
	for _, v := range n.Outputs {
		if v.Name != "" {
			sum += v.Bytes()
		}
	}
	if f := workspaces[n.Op]; f != nil {
		sum += bytesOf(n.Outputs[0].DType) * f(n)
	}
	return sum
}

// workspaces are the numbers of elements of such buffers.
var workspaces = map[string]func(n *Node) float64{
	"Conv": convWorkspace, "ConvTranspose": transposedWorkspace, "Einsum": einsumWorkspace,
}

// window is the number of inputs of an output of a convolution with a kernel [M, C/group, ...], in one group.
func window(kernel Value) float64 { return Value{Dims: kernel.Dims[1:]}.Count() }

// convWorkspace is the column buffer of one image and group. MLAS divides it into pieces where an output has more positions than filters.
func convWorkspace(n *Node) float64 {
	kernel, positions := n.Inputs[1], Value{Dims: n.Outputs[0].Dims[2:]}.Count()
	if filters := kernel.Dims[0] / max(1, n.Integer("group", 1)); float64(filters) <= positions && kernel.Rank() <= 5 {
		return 0
	}
	return window(kernel) * positions
}

// transposedWorkspace is the column buffer of one image and group.
func transposedWorkspace(n *Node) float64 {
	return window(n.Inputs[1]) * Value{Dims: n.Inputs[0].Dims[2:]}.Count()
}

// einsumWorkspace is the largest product of operands that are multiplied two at a time, and their transposes.
func einsumWorkspace(n *Node) float64 {
	sum := 0.0
	for _, in := range n.Inputs {
		sum += in.Count()
	}
	if e, err := ParseEinsum(n); err == nil && len(n.Inputs) > 2 {
		product := 1.0
		for _, length := range e.Lengths {
			product *= float64(length)
		}
		sum += product
	}
	return sum
}
