package onnx

// Precise calls build, in which Inline copies models as they are, whatever Half has set.
func (g *Graph) Precise(build func() error) error {
	half := g.half
	g.half = false
	defer func() { g.half = half }()
	return build()
}
