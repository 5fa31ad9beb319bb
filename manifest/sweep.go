package manifest

import (
	"errors"
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

// sweptField is a field of a task that may have a list, or, if it is nested, whose entries may have one.
type sweptField struct {
	name   string
	nested bool
	shared bool // the campaign has the field, too
}

var sweptFields = []sweptField{{"params", true, false}, {"sigma", false, true}, {"photons", false, true}, {"steps", false, true}, {"solver", true, true}}

// list is a list in place of the value of a task's field, or of an entry of the field.
type list struct {
	keys   []string // field, or field and entry
	values *yaml.Node
}

// expandSweeps replaces the tasks of a campaign by those of its sweeps. It leaves a tree that is no campaign to the decoder.
func (d *yamlDecoder) expandSweeps(root *yaml.Node) {
	tasks := entry(root, "tasks")
	if tasks == nil || tasks.Kind != yaml.SequenceNode {
		return
	}
	for _, f := range sweptFields {
		for _, l := range f.sharedLists(root) {
			d.swept[l.values] = true
		}
	}
	var out []*yaml.Node
	for i, task := range tasks.Content {
		cells := []*yaml.Node{task}
		for _, l := range listsOf(task, root) {
			if cells = d.vary(taskField(i), cells, l); cells == nil {
				return
			}
		}
		if len(out)+len(cells) > MaxCells {
			d.tooMany(task, taskField(i))
			return
		}
		out = append(out, cells...)
	}
	copied := *tasks
	copied.Content = out
	setEntry(root, "tasks", &copied)
}

func (d *yamlDecoder) tooMany(n *yaml.Node, path string) {
	d.problem(n, path, fmt.Errorf("the lists give more than %d tasks; shorten them or divide the campaign", MaxCells))
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

// lists returns the lists in the value of the field.
func (f sweptField) lists(value *yaml.Node) (out []list) {
	isList := func(n *yaml.Node) bool { return n != nil && n.Kind == yaml.SequenceNode && n.Anchor == "" }
	if !f.nested && isList(value) {
		return []list{{[]string{f.name}, value}}
	}
	if f.nested && value != nil && value.Kind == yaml.MappingNode {
		for pair := range slices.Chunk(value.Content, 2) {
			if isList(pair[1]) {
				out = append(out, list{[]string{f.name, pair[0].Value}, pair[1]})
			}
		}
	}
	return out
}

// sharedLists returns the lists in the campaign's own value of the field.
func (f sweptField) sharedLists(root *yaml.Node) []list {
	if !f.shared {
		return nil
	}
	return f.lists(entry(root, f.name))
}

// listsOf returns the lists of a task, and those of the campaign for which it has no value.
func listsOf(task, root *yaml.Node) (out []list) {
	if task.Anchor != "" || task.Kind != yaml.ScalarNode && task.Kind != yaml.MappingNode {
		return nil
	}
	for _, f := range sweptFields {
		own := entry(task, f.name)
		out = append(out, f.lists(own)...)
		for _, l := range f.sharedLists(root) {
			if own == nil || f.nested && own.Kind == yaml.MappingNode && entry(own, l.keys[1]) == nil {
				out = append(out, l)
			}
		}
	}
	return out
}

// vary replaces each task by one for each value of the list. It returns nil after a problem.
func (d *yamlDecoder) vary(path string, tasks []*yaml.Node, l list) []*yaml.Node {
	path += "." + strings.Join(l.keys, ".")
	values := l.values.Content
	if len(values) == 0 {
		d.problem(l.values, path, errors.New("is an empty list; give a value"))
		return nil
	}
	seen := map[string]bool{}
	for _, v := range values {
		if v.Kind == yaml.ScalarNode && seen[strings.TrimSpace(v.Value)] {
			d.problem(v, path, fmt.Errorf("repeats %s; remove one", clip(v.Value)))
			return nil
		}
		seen[v.Value] = true
	}
	if len(tasks)*len(values) > MaxCells {
		d.tooMany(l.values, path)
		return nil
	}
	var out []*yaml.Node
	for _, task := range tasks {
		for _, v := range values {
			out = append(out, replaced(task, l.keys, v))
		}
	}
	return out
}

// replaced returns a copy of a mapping with another value at the place that keys name. A missing mapping is empty, and a plain name
// that of a task.
func replaced(n *yaml.Node, keys []string, value *yaml.Node) *yaml.Node {
	out := yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: value.Line}
	switch {
	case n != nil && n.Kind == yaml.MappingNode:
		out = *n
		out.Content = slices.Clone(n.Content)
	case n != nil:
		out.Line = n.Line
		setEntry(&out, "name", n)
	}
	if len(keys) > 1 {
		value = replaced(entry(n, keys[0]), keys[1:], value)
	}
	setEntry(&out, keys[0], value)
	return &out
}
