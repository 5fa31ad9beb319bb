package manifest

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// The schema of the campaign file: one function per mapping, one entry per field.

func (d *yamlDecoder) spec(n *yaml.Node, s *Spec) {
	d.mapping(n, "", map[string]field{
		"name":      func(n *yaml.Node, path string) { d.text(n, path, &s.Name) },
		"dataset":   func(n *yaml.Node, path string) { d.dataset(n, path, &s.Dataset) },
		"tasks":     func(n *yaml.Node, path string) { s.Tasks = decodeList(d, n, path, d.task) },
		"left_out":  func(n *yaml.Node, path string) { s.LeftOut = decodeList(d, n, path, d.text) },
		"methods":   func(n *yaml.Node, path string) { s.Methods = decodeList(d, n, path, d.text) },
		"preset":    func(n *yaml.Node, path string) { d.text(n, path, &s.Preset) },
		"prior":     func(n *yaml.Node, path string) { d.text(n, path, &s.Prior) },
		"steps":     func(n *yaml.Node, path string) { d.integer(n, path, &s.Steps) },
		"sigma":     func(n *yaml.Node, path string) { d.sigma(n, path, &s.Sigma) },
		"photons":   func(n *yaml.Node, path string) { s.Photons = optional(n, path, d.number) },
		"seed":      func(n *yaml.Node, path string) { d.unsigned(n, path, &s.Seed) },
		"runs":      func(n *yaml.Node, path string) { d.integer(n, path, &s.Runs) },
		"select":    func(n *yaml.Node, path string) { d.text(n, path, (*string)(&s.Select)) },
		"batch":     func(n *yaml.Node, path string) { d.integer(n, path, &s.Batch) },
		"solver":    func(n *yaml.Node, path string) { s.Solver = d.values(n, path) },
		"precision": func(n *yaml.Node, path string) { d.precision(n, path, &s.Precision) },
		"float32":   func(n *yaml.Node, path string) { s.Float32 = decodeList(d, n, path, d.text) },
		"tile": func(n *yaml.Node, path string) {
			d.scalar(n, path, "auto, off, or a number of pixels", &s.Tile, "!!str", "!!int")
		},
		"overlap":   func(n *yaml.Node, path string) { s.Overlap = optional(n, path, d.integer) },
		"split":     func(n *yaml.Node, path string) { s.Split = new(Split); d.split(n, path, s.Split) },
		"output":    func(n *yaml.Node, path string) { d.text(n, path, &s.Output) },
		"unclipped": func(n *yaml.Node, path string) { d.boolean(n, path, &s.Unclipped) },
		"attempts":  func(n *yaml.Node, path string) { d.integer(n, path, &s.Attempts) },
	})
}

// precision refuses an empty value: a person who writes the field wants to fix something.
func (d *yamlDecoder) precision(n *yaml.Node, path string, p *Precision) {
	if d.text(n, path, (*string)(p)); n.Kind == yaml.ScalarNode && *p == "" {
		d.problem(n, path, errors.New("is empty; give a value or remove the field"))
	}
}

func (d *yamlDecoder) dataset(n *yaml.Node, path string, s *Dataset) {
	d.mapping(n, path, map[string]field{
		"path":              func(n *yaml.Node, path string) { d.text(n, path, &s.Path) },
		"size":              func(n *yaml.Node, path string) { d.integer(n, path, &s.Size) },
		"fit":               func(n *yaml.Node, path string) { d.text(n, path, (*string)(&s.Fit)) },
		"limit":             func(n *yaml.Node, path string) { d.integer(n, path, &s.Limit) },
		"recursive":         func(n *yaml.Node, path string) { d.boolean(n, path, &s.Recursive) },
		"columns":           func(n *yaml.Node, path string) { s.Columns = d.texts(n, path) },
		"mask":              func(n *yaml.Node, path string) { d.text(n, path, &s.Mask) },
		"kernel":            func(n *yaml.Node, path string) { d.text(n, path, &s.Kernel) },
		"measurements":      func(n *yaml.Node, path string) { d.boolean(n, path, &s.Measurements) },
		"measurement_range": func(n *yaml.Node, path string) { s.MeasurementRange = d.valueRange(n, path) },
	})
}

// valueRange reads a list of two numbers.
func (d *yamlDecoder) valueRange(n *yaml.Node, path string) *ValueRange {
	list := decodeList(d, n, path, d.number)
	if len(list) != 2 {
		if n.Kind == yaml.SequenceNode {
			d.problem(n, path, fmt.Errorf("has %d values, want those of black and white, as in [0, 255]", len(list)))
		}
		return nil
	}
	return &ValueRange{list[0], list[1]}
}

// sigma reads a noise level.
func (d *yamlDecoder) sigma(n *yaml.Node, path string, s *Sigma) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && n.Value == sigmaWord {
		*s = SigmaAuto
		return
	}
	x := float64(*s)
	d.scalar(n, path, "a number or auto", &x, "!!int", "!!float")
	*s = Sigma(x)
}

// path reads the path of a file, which must not be empty.
func (d *yamlDecoder) path(n *yaml.Node, path string, s *string) {
	if d.text(n, path, s); n.Kind == yaml.ScalarNode && *s == "" {
		d.problem(n, path, errors.New("is empty; give a file or remove the field"))
	}
}

// task reads a plain name or a mapping.
func (d *yamlDecoder) task(n *yaml.Node, path string, t *TaskSpec) {
	if n.Kind == yaml.ScalarNode {
		d.text(n, path, &t.Name)
		return
	}
	d.mapping(n, path, map[string]field{
		"name":     func(n *yaml.Node, path string) { d.text(n, path, &t.Name) },
		"operator": func(n *yaml.Node, path string) { d.path(n, path, &t.Operator) },
		"params":   func(n *yaml.Node, path string) { t.Params = d.numbers(n, path) },
		"sigma":    func(n *yaml.Node, path string) { t.Sigma = optional(n, path, d.sigma) },
		"photons":  func(n *yaml.Node, path string) { t.Photons = optional(n, path, d.number) },
		"steps":    func(n *yaml.Node, path string) { d.integer(n, path, &t.Steps) },
		"runs":     func(n *yaml.Node, path string) { d.integer(n, path, &t.Runs) },
		"solver":   func(n *yaml.Node, path string) { t.Solver = d.values(n, path) },
		"methods":  func(n *yaml.Node, path string) { t.Methods = decodeList(d, n, path, d.text) },
		"mask":     func(n *yaml.Node, path string) { d.path(n, path, &t.Mask) },
		"kernel":   func(n *yaml.Node, path string) { d.path(n, path, &t.Kernel) },
	})
	if t.Operator != "" && t.Name == "" {
		t.Name = OperatorName(t.Operator)
	}
}
