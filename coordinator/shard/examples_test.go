package shard_test

import (
	"path/filepath"
	"testing"

	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/restore/method"
	"ddiff/restore/prior"
)

// TestMethodsAtEqualCost: each method of examples/methods/equal_cost.yaml makes 99 or 100 evaluations of the network for each task.
func TestMethodsAtEqualCost(t *testing.T) {
	t.Parallel()
	spec, err := manifest.Load(filepath.Join("..", "..", "examples", "methods", "equal_cost.yaml"))
	must(t, err)
	p, err := prior.Open(prior.Bundled)
	must(t, err)
	n := 0
	for _, task := range spec.Tasks {
		for _, name := range task.Methods {
			m, err := method.Builtin().Find(name)
			must(t, err)
			s, err := shard.Catalogue{}.Resolve(spec.Preset, spec.Effective(task), name, p.Schedule)
			must(t, err)
			if got := m.Info().Evaluations(s); got < 99 || got > 100 {
				t.Errorf("%s, %s: %d evaluations", task.Name, name, got)
			}
			n++
		}
	}
	if n != 60 {
		t.Errorf("%d pairs of a task and a method, want 60", n)
	}
}
