package tuner

// Expectation is the time that a tuner's curves predict for items.
type Expectation struct {
	// Seconds is the time of the solver for the items with a curve, at the best measured batch size.
	Seconds float64
	// Provider is the execution provider of the curves.
	Provider string
	// Unknown counts the items without a curve.
	Unknown int
}

// Expect adds items of one shape with built-in operators to an expectation: items × evaluations of the network × the time per image and evaluation. Of several runtimes with
// curves for the prior and the shape it takes the fastest. An empty provider matches all.
func (t *Tuner) Expect(e *Expectation, prior, provider string, channels, height, width, items, evaluations int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	best := 0.0
	for w, c := range t.curves {
		if w.Operator != "" || w.Prior != prior || provider != "" && w.Provider != provider || w.Channels != channels || w.Height != height || w.Width != width {
			continue
		}
		for _, p := range c.Points {
			if best == 0 || p.Seconds < best {
				best, e.Provider = p.Seconds, w.Provider
			}
		}
	}
	if best == 0 {
		e.Unknown += items
		return
	}
	e.Seconds += best * float64(items) * float64(evaluations)
}
