package manifest

import (
	"errors"
	"fmt"
	"slices"

	"ddiff/restore/parameter"
)

// Precision is the arithmetic of the score network in a campaign. Operators, data term, dual variable, schedule, norms and
// metrics are float32 or better in every precision.
//
// A fixed precision is part of the identity of an item: results of two precisions are never used for each other. In a
// campaign without a precision each worker computes in its own default; the
// result records it ([item.Runtime.Precision]).
type Precision = parameter.Precision

// The precisions of a campaign.
const (
	PrecisionFloat32  = parameter.Float32
	PrecisionBFloat16 = parameter.BFloat16
	PrecisionFloat16  = parameter.Float16
	// PrecisionAuto: one fixed precision for the whole campaign but the tasks of [Spec.Float32], which the device of ddiff run decides. No campaign
	// of a cluster has it.
	PrecisionAuto Precision = "auto"
)

// KeepFloat32 adds tasks to Float32 if the precision is auto. If the campaign has no other task, the precision becomes float32, which every worker
// computes. It returns the tasks of the campaign that stay in float32.
func (s *Spec) KeepFloat32(tasks []string) (kept []string) {
	if s.Precision != PrecisionAuto {
		return nil
	}
	for _, name := range tasks {
		if !slices.Contains(s.Float32, name) {
			s.Float32 = append(slices.Clone(s.Float32), name)
		}
	}
	others := 0
	for _, t := range s.Tasks {
		switch {
		case !slices.Contains(s.Float32, t.Name):
			others++
		case !slices.Contains(kept, t.Name):
			kept = append(kept, t.Name)
		}
	}
	if others == 0 && len(kept) > 0 {
		s.Precision = PrecisionFloat32
	}
	return kept
}

// PrecisionOf returns the precision of a task's items; empty: each worker's default.
func (s *Spec) PrecisionOf(task string) Precision {
	if s.Precision != "" && slices.Contains(s.Float32, task) {
		return PrecisionFloat32
	}
	return s.Precision
}

// float32 reports unknown and repeated tasks of float32, and the field without a precision.
func (c *checker) float32() {
	s := c.spec
	if len(s.Float32) > 0 && s.Precision == "" {
		c.add("float32", errors.New("needs the field precision, which other tasks have"))
	}
	for i, name := range s.Float32 {
		field := fmt.Sprintf("float32[%d]", i)
		if !c.isBuiltIn(name) && !s.hasTask(name) && !slices.Contains(s.LeftOut, name) {
			c.add(field, Unknown("task", name, c.builtIn()))
		} else if slices.Contains(s.Float32[:i], name) {
			c.add(field, fmt.Errorf("task %q is repeated; remove one", name))
		}
	}
}
