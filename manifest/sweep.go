package manifest

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxCells is the largest number of tasks of a campaign after its lists are expanded.
const MaxCells = 4096

// A campaign file may have a list in place of a value of sigma, photons, steps, params and solver. The lists are expanded before the
// fields are decoded: a task becomes one task per combination of its values, those of params first, then sigma, photons,
// steps and solver, each in the order of the file, the last one fastest. A list of the campaign holds for the tasks that have
// no value of their own.

// sweptFields are the fields of a task that may have a list, and those whose entries may have one.
var sweptFields = []struct {
	name   string
	nested bool
}{{"params", true}, {"sigma", false}, {"photons", false}, {"steps", false}, {"solver", true}}

// expandSweeps replaces the tasks of a campaign by those of its sweeps. It leaves a tree that is no campaign to the decoder.
func (d *yamlDecoder) expandSweeps(root *yaml.Node) {
	tasks := entry(root, "tasks")
	if tasks == nil || tasks.Kind != yaml.SequenceNode {
		return
	}
	shared := d.takeLists(root)
	var out []*yaml.Node
	for i, task := range tasks.Content {
		path := fmt.Sprintf("tasks[%d]", i)
		cells := d.cells(path, withLists(task, shared))
		if cells == nil {
			return
		}
		if len(out)+len(cells) > MaxCells {
			d.problem(task, path, fmt.Errorf("the lists give more than %d tasks; shorten them or divide the campaign", MaxCells))
			return
		}
		out = append(out, cells...)
	}
	copied := *tasks
	copied.Content = out
	setEntry(root, "tasks", &copied)
}

// entry returns the value of a mapping's key, or nil.
func entry(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for pair := range slices.Chunk(n.Content, 2) {
		if pair[0].Value == key {
			return pair[1]
		}
	}
	return nil
}

func setEntry(n *yaml.Node, key string, value *yaml.Node) {
	for pair := range slices.Chunk(n.Content, 2) {
		if pair[0].Value == key {
			pair[1] = value
			return
		}
	}
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key, Line: value.Line}, value)
}

func isList(n *yaml.Node) bool { return n != nil && n.Kind == yaml.SequenceNode && n.Anchor == "" }

// list is a list of the campaign: of a field, or of an entry of solver.
type list struct {
	field, name string
	key, value  *yaml.Node
}

// takeLists removes the lists of the campaign's own sigma, photons, steps and solver from the tree, and returns them.
func (d *yamlDecoder) takeLists(root *yaml.Node) []list {
	var out []list
	root.Content = slices.Clone(root.Content)
	for _, f := range sweptFields {
		value := entry(root, f.name)
		if f.name == "params" || value == nil {
			continue
		}
		if !f.nested && isList(value) {
			out = append(out, list{f.name, "", value, value})
			d.removeEntry(root, "", f.name)
		}
		if !f.nested || value.Kind != yaml.MappingNode {
			continue
		}
		kept := *value
		for pair := range slices.Chunk(value.Content, 2) {
			if k, v := pair[0], pair[1]; isList(v) {
				out = append(out, list{f.name, k.Value, k, v})
				d.removeEntry(&kept, f.name, k.Value)
			}
		}
		setEntry(root, f.name, &kept)
	}
	return out
}

// removeEntry removes a field of the mapping at path and reports its repetitions.
func (d *yamlDecoder) removeEntry(n *yaml.Node, path, key string) {
	var kept []*yaml.Node
	first := 0 // its line
	for pair := range slices.Chunk(n.Content, 2) {
		switch {
		case pair[0].Value != key:
			kept = append(kept, pair...)
		case first == 0:
			first = pair[0].Line
		default:
			d.repeated(pair[0], path, first)
		}
	}
	n.Content = kept
}

// withLists returns a task with the lists of the campaign for which it has no value.
func withLists(task *yaml.Node, shared []list) *yaml.Node {
	if len(shared) == 0 || task.Anchor != "" {
		return task
	}
	out := *task
	switch task.Kind {
	case yaml.ScalarNode:
		name := *task
		out = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: task.Line, Column: task.Column}
		out.Content = []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: "name", Line: task.Line}, &name}
	case yaml.MappingNode:
		out.Content = slices.Clone(task.Content)
	default:
		return task
	}
	for _, l := range shared {
		own := entry(&out, l.field)
		switch {
		case l.name == "" && own == nil:
			setEntry(&out, l.field, l.value)
		case l.name != "" && own == nil:
			setEntry(&out, l.field, &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: l.key.Line, Content: []*yaml.Node{l.key, l.value}})
		case l.name != "" && own.Kind == yaml.MappingNode && entry(own, l.name) == nil:
			merged := *own
			merged.Content = append(slices.Clone(own.Content), l.key, l.value)
			setEntry(&out, l.field, &merged)
		}
	}
	return &out
}

// cells returns one task per combination of a task's lists. It returns nil after a problem.
func (d *yamlDecoder) cells(path string, task *yaml.Node) []*yaml.Node {
	out := []*yaml.Node{task}
	if task.Kind != yaml.MappingNode {
		return out
	}
	for _, f := range sweptFields {
		value := entry(task, f.name)
		if !f.nested && isList(value) {
			if out = d.vary(path+"."+f.name, out, value, []string{f.name}); out == nil {
				return nil
			}
		}
		if !f.nested || value == nil || value.Kind != yaml.MappingNode {
			continue
		}
		for pair := range slices.Chunk(value.Content, 2) {
			name, inner := pair[0].Value, pair[1]
			if !isList(inner) {
				continue
			}
			if out = d.vary(path+"."+f.name+"."+name, out, inner, []string{f.name, name}); out == nil {
				return nil
			}
		}
	}
	return out
}

// vary replaces each task by one for each value of the list, at the place that keys name.
func (d *yamlDecoder) vary(path string, tasks []*yaml.Node, values *yaml.Node, keys []string) []*yaml.Node {
	if len(values.Content) == 0 {
		d.problem(values, path, fmt.Errorf("is an empty list; give a value"))
		return nil
	}
	seen := map[string]bool{}
	for _, v := range values.Content {
		if v.Kind == yaml.ScalarNode && seen[strings.TrimSpace(v.Value)] {
			d.problem(v, path, fmt.Errorf("repeats %s; remove one", clip(v.Value)))
			return nil
		}
		seen[v.Value] = true
	}
	if len(tasks)*len(values.Content) > MaxCells {
		d.problem(values, path, fmt.Errorf("the lists give more than %d tasks; shorten them or divide the campaign", MaxCells))
		return nil
	}
	var out []*yaml.Node
	for _, task := range tasks {
		for _, v := range values.Content {
			out = append(out, replaced(task, keys, v))
		}
	}
	return out
}

// replaced returns a copy of a mapping with another value at the place that keys name.
func replaced(n *yaml.Node, keys []string, value *yaml.Node) *yaml.Node {
	out := *n
	out.Content = slices.Clone(n.Content)
	if len(keys) > 1 {
		value = replaced(entry(n, keys[0]), keys[1:], value)
	}
	setEntry(&out, keys[0], value)
	return &out
}
