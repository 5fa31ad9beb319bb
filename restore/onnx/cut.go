package onnx

// cut is the part of one axis that a Slice takes: count elements from start, step apart.
type cut struct{ axis, start, step, count int }

// cuts returns the axes of a Slice with their parts.
func (f *facts) cuts(n *node) ([]cut, error) {
	starts, ok := f.integersOf(n.input(1))
	ends, known := f.integersOf(n.input(2))
	if !ok || !known || len(starts) != len(ends) {
		return nil, n.refuse("its range depends on data")
	}
	x := n.inputs[0]
	axes, steps := make([]int, len(starts)), make([]int, len(starts))
	for i := range starts {
		axes[i], steps[i] = i, 1
	}
	if n.has(3) {
		if axes, ok = f.integersOf(n.inputs[3]); !ok || len(axes) != len(starts) {
			return nil, n.refuse("its axes depend on data")
		}
	}
	if n.has(4) {
		if steps, ok = f.integersOf(n.inputs[4]); !ok || len(steps) != len(starts) {
			return nil, n.refuse("its steps depend on data")
		}
	}
	out := make([]cut, len(starts))
	for i := range starts {
		ax := axis(axes[i], x.Rank())
		out[i] = makeCut(ax, starts[i], ends[i], steps[i], x.Dims[ax])
	}
	return out, nil
}

// makeCut resolves a range of an axis of a length. Positions may count from the end and lie outside.
func makeCut(axis, start, end, step, length int) cut {
	if start < 0 {
		start += length
	}
	if end < 0 {
		end += length
	}
	c := cut{axis: axis, step: step}
	if step > 0 {
		c.start = min(max(start, 0), length)
		c.count = max(0, (min(max(end, 0), length)-c.start+step-1)/step)
	} else {
		c.start = min(max(start, -1), length-1)
		c.count = max(0, (c.start-min(max(end, -1), length-1)-step-1)/-step)
	}
	return c
}
