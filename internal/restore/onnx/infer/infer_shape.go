package infer

import "slices"

// movedShapes are the inferences of operations that move elements.
var movedShapes = map[string]inference{
	"Reshape": reshapeShape, "Flatten": flattenShape, "Transpose": transposeShape, "Squeeze": squeezeShape, "Unsqueeze": unsqueezeShape,
	"Slice": sliceShape, "Split": splitShape, "Concat": concatShape, "Gather": gatherShape, "GatherElements": gatherElementsShape,
	"GatherND": gatherNDShape, "Expand": expandShape, "Tile": tileShape, "Pad": padShape, "DepthToSpace": depthToSpaceShape,
	"SpaceToDepth": spaceToDepthShape,
}

func reshapeShape(f *Facts, n *Node) error {
	want, ok := f.IntegersOf(n.Inputs[1])
	if !ok {
		return unknown("the shape")
	}
	in := n.Inputs[0]
	dims, free, known := slices.Clone(want), -1, 1
	for i, d := range want {
		switch {
		case d == 0 && n.Integer("allowzero", 0) == 0:
			dims[i] = in.Dims[i]
		case d == -1:
			free = i
			continue
		}
		known *= dims[i]
	}
	if free >= 0 {
		if known == 0 || in.Size()%known != 0 {
			return misfit(n)
		}
		dims[free] = in.Size() / known
	}
	if Size(dims) != in.Size() {
		return misfit(n)
	}
	return n.returns(in.DType, dims)
}

func flattenShape(_ *Facts, n *Node) error {
	in := n.Inputs[0]
	ax := Axis(n.Integer("axis", 1), in.Rank())
	return n.returns(in.DType, []int{Size(in.Dims[:ax]), Size(in.Dims[ax:])})
}

func transposeShape(_ *Facts, n *Node) error {
	in, perm := n.Inputs[0], Permutation(n)
	if len(perm) != in.Rank() {
		return misfit(n)
	}
	dims := make([]int, len(perm))
	for i, p := range perm {
		dims[i] = in.Dims[p]
	}
	return n.returns(in.DType, dims)
}

// Permutation returns the order of dimensions of a Transpose.
func Permutation(n *Node) []int {
	if perm, ok := n.Attrs["perm"].([]int); ok {
		return perm
	}
	perm := make([]int, n.Inputs[0].Rank())
	for i := range perm {
		perm[i] = len(perm) - 1 - i
	}
	return perm
}

func squeezeShape(f *Facts, n *Node) error {
	in := n.Inputs[0]
	axes, ok := f.axesOf(n, in.Rank())
	if !ok {
		return unknown("a list of axes")
	}
	dims := []int{}
	for i, d := range in.Dims {
		if slices.Contains(axes, i) || axes == nil && d == 1 {
			if d != 1 {
				return misfit(n)
			}
			continue
		}
		dims = append(dims, d)
	}
	return n.returns(in.DType, dims)
}

func unsqueezeShape(f *Facts, n *Node) error {
	in := n.Inputs[0]
	given, ok := f.axesOf(n, 0)
	if !ok {
		return unknown("a list of axes")
	}
	axes, _ := f.axesOf(n, in.Rank()+len(given))
	dims := slices.Clone(in.Dims)
	for _, a := range axes {
		dims = slices.Insert(dims, a, 1)
	}
	return n.returns(in.DType, dims)
}

func sliceShape(f *Facts, n *Node) error {
	cuts, err := f.Cuts(n)
	if err != nil {
		return unknown("a range")
	}
	dims := slices.Clone(n.Inputs[0].Dims)
	for _, c := range cuts {
		dims[c.Axis] = c.Count
	}
	return n.returns(n.Inputs[0].DType, dims)
}

// parts returns the lengths of a Split.
func (f *Facts) parts(n *Node) ([]int, error) {
	in := n.Inputs[0]
	length := in.Dims[Axis(n.Integer("axis", 0), in.Rank())]
	if n.Has(1) {
		lengths, ok := f.IntegersOf(n.Inputs[1])
		if !ok {
			return nil, unknown("a list of lengths")
		}
		rest := length
		for _, l := range lengths {
			rest -= l
		}
		if rest != 0 || len(lengths) < len(n.Outputs) {
			return nil, misfit(n)
		}
		return lengths, nil
	}
	count := n.Integer("num_outputs", len(n.Outputs))
	if count != len(n.Outputs) {
		return nil, misfit(n)
	}
	each := (length + count - 1) / count
	lengths := make([]int, count)
	for i := range lengths {
		lengths[i] = max(0, min(each, length-i*each))
	}
	return lengths, nil
}

func splitShape(f *Facts, n *Node) error {
	lengths, err := f.parts(n)
	if err != nil {
		return err
	}
	in := n.Inputs[0]
	ax := Axis(n.Integer("axis", 0), in.Rank())
	for i := range n.Outputs {
		dims := slices.Clone(in.Dims)
		dims[ax] = lengths[i]
		n.set(i, in.DType, dims)
	}
	return nil
}

func concatShape(_ *Facts, n *Node) error {
	in := n.Inputs[0]
	ax := Axis(n.Integer("axis", 0), in.Rank())
	dims := slices.Clone(in.Dims)
	for _, other := range n.Inputs[1:] {
		dims[ax] += other.Dims[ax]
		for i := range dims {
			if i != ax && other.Dims[i] != dims[i] {
				return misfit(n)
			}
		}
	}
	return n.returns(in.DType, dims)
}

func gatherShape(_ *Facts, n *Node) error {
	in := n.Inputs[0]
	ax := Axis(n.Integer("axis", 0), in.Rank())
	return n.returns(in.DType, slices.Concat(in.Dims[:ax], n.Inputs[1].Dims, in.Dims[ax+1:]))
}

func gatherElementsShape(_ *Facts, n *Node) error {
	return n.returns(n.Inputs[0].DType, n.Inputs[1].Dims)
}

func gatherNDShape(_ *Facts, n *Node) error {
	in, index := n.Inputs[0], n.Inputs[1]
	last := index.Rank() - 1
	from := n.Integer("batch_dims", 0) + index.Dims[last]
	return n.returns(in.DType, slices.Concat(index.Dims[:last], in.Dims[from:]))
}

func expandShape(f *Facts, n *Node) error {
	want, ok := f.IntegersOf(n.Inputs[1])
	if !ok {
		return unknown("the shape")
	}
	dims, ok := Broadcast(n.Inputs[0].Dims, want)
	if !ok {
		return misfit(n)
	}
	return n.returns(n.Inputs[0].DType, dims)
}

func tileShape(f *Facts, n *Node) error {
	repeats, ok := f.IntegersOf(n.Inputs[1])
	if !ok {
		return unknown("the number of copies")
	}
	dims := slices.Clone(n.Inputs[0].Dims)
	for i := range dims {
		dims[i] *= repeats[i]
	}
	return n.returns(n.Inputs[0].DType, dims)
}

// Margins returns the number of elements that a Pad adds before and after each dimension. Negative ones remove elements.
func (f *Facts) Margins(n *Node) (before, after []int, err error) {
	rank := n.Inputs[0].Rank()
	pads, ok := f.IntegersOf(n.Input(1))
	if !ok {
		return nil, nil, unknown("a list of margins")
	}
	axes := make([]int, rank)
	for i := range axes {
		axes[i] = i
	}
	if n.Has(3) {
		if axes, ok = f.IntegersOf(n.Inputs[3]); !ok {
			return nil, nil, unknown("a list of axes")
		}
	}
	if len(pads) != 2*len(axes) {
		return nil, nil, misfit(n)
	}
	before, after = make([]int, rank), make([]int, rank)
	for i, a := range axes {
		before[Axis(a, rank)], after[Axis(a, rank)] = pads[i], pads[i+len(axes)]
	}
	return before, after, nil
}

func padShape(f *Facts, n *Node) error {
	before, after, err := f.Margins(n)
	if err != nil {
		return err
	}
	dims := slices.Clone(n.Inputs[0].Dims)
	for i := range dims {
		dims[i] += before[i] + after[i]
	}
	return n.returns(n.Inputs[0].DType, dims)
}

func depthToSpaceShape(_ *Facts, n *Node) error {
	in, b := n.Inputs[0], n.Integer("blocksize", 1)
	return n.returns(in.DType, []int{in.Dims[0], in.Dims[1] / (b * b), in.Dims[2] * b, in.Dims[3] * b})
}

func spaceToDepthShape(_ *Facts, n *Node) error {
	in, b := n.Inputs[0], n.Integer("blocksize", 1)
	return n.returns(in.DType, []int{in.Dims[0], in.Dims[1] * b * b, in.Dims[2] / b, in.Dims[3] / b})
}
