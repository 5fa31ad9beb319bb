package shard_test

import (
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/prior"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// TestMethodsAtEqualCost: each method of examples/methods/equal_cost.yaml makes 99 or 100 evaluations of the network for each task, ddiff at most as many.
func TestMethodsAtEqualCost(t *testing.T) {
	t.Parallel()
	settings := settingsPerPair(t, "equal_cost.yaml")
	for pair, n := range settings {
		if n != 1 {
			t.Errorf("%s has %d settings", pair, n)
		}
	}
	if len(settings) != 107 {
		t.Errorf("%d pairs of a task and a method, want 107", len(settings))
	}
}

// unsearched reports whether a method of equal_cost.yaml is not in search.yaml.
func unsearched(name string) bool {
	return slices.Contains([]string{"ddiff", "ddnm", "pigdm", "fast_dips", "pnpdm", "sitcom", "pnp_flow", "flower"}, name)
}

// TestMethodsArePreset: natural has the settings of equal_cost.yaml, for all methods that were searched but dpir, which needs fewer evaluations.
func TestMethodsArePreset(t *testing.T) {
	t.Parallel()
	spec, p := methodsCampaign(t, "equal_cost.yaml")
	for _, task := range spec.Tasks {
		name := task.Methods[0]
		if len(task.Methods) != 1 {
			t.Fatalf("%s has the methods %v", task.Name, task.Methods)
		}
		if unsearched(name) || name == "dpir" {
			continue
		}
		settings := func(t1 item.Task) method.Settings {
			t1 = spec.Effective(t1)
			t1.Method = name
			s, err := method.Builtin().Resolve(method.RequestOf(t1), p.Schedule.Steps())
			must(t, err)
			return s
		}
		s, natural := settings(task), settings(item.Task{Name: task.Name})
		if !reflect.DeepEqual(s, natural) {
			t.Errorf("%s, %s: %v, natural has %v", task.Name, name, s, natural)
		}
	}
}

// methodsCampaign reads a campaign of examples/methods, and its prior.
func methodsCampaign(t *testing.T, file string) (*manifest.Spec, *prior.Prior) {
	t.Helper()
	spec, err := manifest.Load(filepath.Join("..", "..", "..", "examples", "methods", file))
	must(t, err)
	p, err := prior.Open(prior.Bundled)
	must(t, err)
	return spec, p
}

// TestMethodsSearch: examples/methods/search.yaml compares six settings of each pair of a task and a method, at the same cost: all pairs of
// equal_cost.yaml but those of ddiff, which has the settings of natural there, and of methods without a search, and those of quality.yaml for tasks that are not the paper's.
func TestMethodsSearch(t *testing.T) {
	t.Parallel()
	settings, want := settingsPerPair(t, "search.yaml"), settingsPerPair(t, "equal_cost.yaml")
	for _, task := range []string{operator.Denoise, operator.Demosaic, operator.Colorize} {
		for _, name := range []string{"diffpir", "daps", "ddrm"} {
			want[task+" "+name] = 1
		}
	}
	maps.DeleteFunc(want, func(pair string, _ int) bool { return unsearched(strings.Fields(pair)[1]) })
	for pair := range want {
		if settings[pair] != 6 {
			t.Errorf("%s has %d settings, want 6", pair, settings[pair])
		}
	}
	if len(settings) != len(want) {
		t.Errorf("%d pairs of a task and a method, want %d", len(settings), len(want))
	}
}

// settingsPerPair counts the settings of each pair of a task and a method in a campaign of examples/methods. All but ddiff make 99 or 100 evaluations of the
// network.
func settingsPerPair(t *testing.T, file string) map[string]int {
	t.Helper()
	spec, p := methodsCampaign(t, file)
	settings := map[string]int{}
	for _, task := range spec.Tasks {
		e := spec.Effective(task)
		for _, name := range task.Methods {
			m, err := method.Builtin().Find(name)
			must(t, err)
			e.Method = name
			s, err := method.Builtin().Resolve(method.RequestOf(e), p.Schedule.Steps())
			must(t, err)
			if got := m.Info().Evaluations(s); got < 99 && name != "ddiff" || got > 100 {
				t.Errorf("%s: %s, %s: %d evaluations", file, task.Name, name, got)
			}
			settings[task.Name+" "+name]++
		}
	}
	return settings
}
