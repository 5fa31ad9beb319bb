package infer

// Cut is the part of one axis that a Slice takes: count elements from start, step apart.
type Cut struct{ Axis, Start, Step, Count int }

// Cuts returns the axes of a Slice with their parts.
func (f *Facts) Cuts(n *Node) ([]Cut, error) {
	starts, ok := f.IntegersOf(n.Input(1))
	ends, known := f.IntegersOf(n.Input(2))
	if !ok || !known || len(starts) != len(ends) {
		return nil, n.Refuse("its range depends on data")
	}
	x := n.Inputs[0]
	axes, steps := make([]int, len(starts)), make([]int, len(starts))
	for i := range starts {
		axes[i], steps[i] = i, 1
	}
	if n.Has(3) {
		if axes, ok = f.IntegersOf(n.Inputs[3]); !ok || len(axes) != len(starts) {
			return nil, n.Refuse("its axes depend on data")
		}
	}
	if n.Has(4) {
		if steps, ok = f.IntegersOf(n.Inputs[4]); !ok || len(steps) != len(starts) {
			return nil, n.Refuse("its steps depend on data")
		}
	}
	out := make([]Cut, len(starts))
	for i := range starts {
		ax := Axis(axes[i], x.Rank())
		out[i] = makeCut(ax, starts[i], ends[i], steps[i], x.Dims[ax])
	}
	return out, nil
}

// makeCut resolves a range of an axis of a length. Positions may count from the end and lie outside.
func makeCut(axis, start, end, step, length int) Cut {
	if start < 0 {
		start += length
	}
	if end < 0 {
		end += length
	}
	c := Cut{Axis: axis, Step: step}
	if step > 0 {
		c.Start = min(max(start, 0), length)
		c.Count = max(0, (min(max(end, 0), length)-c.Start+step-1)/step)
	} else {
		c.Start = min(max(start, -1), length-1)
		c.Count = max(0, (c.Start-min(max(end, -1), length-1)-step-1)/-step)
	}
	return c
}
