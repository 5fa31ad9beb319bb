package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseYAML returns the root mapping of a file with exactly one document.
func parseYAML(file string, data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, &FieldError{File: file, Err: errors.New("is empty; a campaign needs at least dataset and tasks")}
	case err != nil:
		return nil, syntaxError(file, err)
	}
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, &FieldError{File: file, Line: second.Line, Err: errors.New("a second YAML document starts here; write one campaign per file")}
	case !errors.Is(err, io.EOF):
		return nil, syntaxError(file, err)
	}
	if len(doc.Content) != 1 {
		return nil, &FieldError{File: file, Err: errors.New("is empty; a campaign needs at least dataset and tasks")}
	}
	return doc.Content[0], nil
}

// yamlMessage matches the parser's message.
var yamlMessage = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// syntaxError converts the parser's message to a FieldError.
func syntaxError(file string, err error) error {
	text, line := err.Error(), 0
	if m := yamlMessage.FindStringSubmatch(text); m != nil {
		text = m[2]
		if n, convErr := strconv.Atoi(m[1]); convErr == nil {
			line = n
			// The grammar's messages count lines from 0, the tokeniser's from 1.
			if strings.HasPrefix(text, "did not find expected") {
				line++
			}
		}
	}
	return &FieldError{File: file, Line: line, Err: fmt.Errorf("not valid YAML: %s", text)}
}

// field decodes the value of one field.
type field func(value *yaml.Node, path string)

// yamlDecoder decodes nodes and collects all problems with their lines, where the library's decoder stops at the first.
type yamlDecoder struct {
	file     string
	lines    map[string]int // field path -> line
	problems []*FieldError
}

func newYAMLDecoder(file string) *yamlDecoder {
	return &yamlDecoder{file: file, lines: map[string]int{}}
}

func (d *yamlDecoder) problem(n *yaml.Node, path string, err error) {
	d.problems = append(d.problems, &FieldError{File: d.file, Line: n.Line, Field: path, Err: err})
}

// accept refuses aliases, anchors and missing values.
func (d *yamlDecoder) accept(n *yaml.Node, path string) bool {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		d.problem(n, path, errors.New("anchors and aliases are not supported; write the value out"))
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		d.problem(n, path, errors.New("has no value; give one or remove the field"))
	default:
		return true
	}
	return false
}

// repeated records a field that is also on an earlier line.
func (d *yamlDecoder) repeated(key *yaml.Node, path string, first int) {
	d.problem(key, path, fmt.Errorf("field %q is repeated, first on line %d; remove one", clip(key.Value), first))
}

// wrongType records a node of a wrong type.
func (d *yamlDecoder) wrongType(n *yaml.Node, path, want string) {
	got := "a mapping"
	switch n.Kind {
	case yaml.SequenceNode:
		got = "a list"
	case yaml.ScalarNode:
		got = strconv.Quote(clip(n.Value))
	}
	d.problem(n, path, fmt.Errorf("want %s, got %s", want, got))
}

// mapping decodes each field and refuses unknown and repeated fields.
func (d *yamlDecoder) mapping(n *yaml.Node, path string, fields map[string]field) {
	d.entries(n, path, func(key, value *yaml.Node, child string) {
		read, ok := fields[key.Value]
		if !ok {
			d.problem(key, path, Unknown("field", key.Value, slices.Sorted(maps.Keys(fields))))
			return
		}
		if d.accept(value, child) {
			read(value, child)
		}
	})
}

// decodeMap decodes a mapping from arbitrary names.
func decodeMap[T any](d *yamlDecoder, n *yaml.Node, path string, read func(*yaml.Node, string, *T)) map[string]T {
	out := map[string]T{}
	d.entries(n, path, func(key, value *yaml.Node, child string) {
		if d.accept(value, child) {
			out[key.Value] = *optional(value, child, read)
		}
	})
	return out
}

// value decodes a number or a word.
func (d *yamlDecoder) value(n *yaml.Node, path string, v *Value) {
	if n.ShortTag() == "!!str" && n.Value != "" {
		v.Word = n.Value
	} else {
		d.scalar(n, path, "a number or a word", &v.Number, "!!int", "!!float")
	}
}

// entries calls visit for each entry of a mapping with distinct plain keys.
func (d *yamlDecoder) entries(n *yaml.Node, path string, visit func(key, value *yaml.Node, child string)) {
	if !d.accept(n, path) {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.wrongType(n, path, "a mapping of fields")
		return
	}
	seen := map[string]int{}
	for pair := range slices.Chunk(n.Content, 2) {
		key, value := pair[0], pair[1]
		if key.Kind != yaml.ScalarNode {
			d.wrongType(key, path, "a field name")
			continue
		}
		if first, ok := seen[key.Value]; ok {
			d.repeated(key, path, first)
			continue
		}
		seen[key.Value] = key.Line
		child := key.Value
		if path != "" {
			child = path + "." + key.Value
		}
		d.lines[child] = key.Line
		visit(key, value, child)
	}
}

// decodeList decodes every element of a list.
func decodeList[T any](d *yamlDecoder, n *yaml.Node, path string, read func(*yaml.Node, string, *T)) []T {
	if n.Kind != yaml.SequenceNode {
		d.wrongType(n, path, "a list, as in [first, second]")
		return nil
	}
	out := make([]T, 0, len(n.Content))
	for i, element := range n.Content {
		child := fmt.Sprintf("%s[%d]", path, i)
		d.lines[child] = element.Line
		var value T
		if d.accept(element, child) {
			read(element, child, &value)
		}
		out = append(out, value)
	}
	return out
}

// optional decodes a field that is a nil pointer if absent.
func optional[T any](n *yaml.Node, path string, read func(*yaml.Node, string, *T)) *T {
	value := new(T)
	read(n, path, value)
	return value
}

// scalar decodes a node with one of the tags.
func (d *yamlDecoder) scalar(n *yaml.Node, path, want string, into any, tags ...string) {
	if n.Kind != yaml.ScalarNode || !slices.Contains(tags, n.ShortTag()) || n.Decode(into) != nil {
		d.wrongType(n, path, want)
	}
}

func (d *yamlDecoder) text(n *yaml.Node, path string, into *string) {
	d.scalar(n, path, "text (quote what looks like a number or true/false)", into, "!!str")
}

func (d *yamlDecoder) integer(n *yaml.Node, path string, into *int) {
	d.scalar(n, path, "an integer", into, "!!int")
}

func (d *yamlDecoder) unsigned(n *yaml.Node, path string, into *uint64) {
	d.scalar(n, path, "an integer from 0 to 18446744073709551615", into, "!!int")
}

func (d *yamlDecoder) number(n *yaml.Node, path string, into *float64) {
	d.scalar(n, path, "a number", into, "!!int", "!!float")
}

func (d *yamlDecoder) boolean(n *yaml.Node, path string, into *bool) {
	d.scalar(n, path, "true or false", into, "!!bool")
}

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
		"solver":    func(n *yaml.Node, path string) { s.Solver = decodeMap(d, n, path, d.value) },
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
		"pool":      func(n *yaml.Node, path string) { d.text(n, path, &s.Pool) },
		"notify":    func(n *yaml.Node, path string) { d.text(n, path, &s.Notify) },
		"budget":    func(n *yaml.Node, path string) { d.budget(n, path, &s.Budget) },
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
		"columns":           func(n *yaml.Node, path string) { s.Columns = decodeMap(d, n, path, d.text) },
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
		"params":   func(n *yaml.Node, path string) { t.Params = decodeMap(d, n, path, d.number) },
		"sigma":    func(n *yaml.Node, path string) { t.Sigma = optional(n, path, d.sigma) },
		"photons":  func(n *yaml.Node, path string) { t.Photons = optional(n, path, d.number) },
		"steps":    func(n *yaml.Node, path string) { d.integer(n, path, &t.Steps) },
		"runs":     func(n *yaml.Node, path string) { d.integer(n, path, &t.Runs) },
		"solver":   func(n *yaml.Node, path string) { t.Solver = decodeMap(d, n, path, d.value) },
		"methods":  func(n *yaml.Node, path string) { t.Methods = decodeList(d, n, path, d.text) },
		"mask":     func(n *yaml.Node, path string) { d.path(n, path, &t.Mask) },
		"kernel":   func(n *yaml.Node, path string) { d.path(n, path, &t.Kernel) },
	})
	if t.Operator != "" && t.Name == "" {
		t.Name = OperatorName(t.Operator)
	}
}

// YAML returns the campaign as a campaign file. comment is its first lines, without marks.
func (s *Spec) YAML(comment string) ([]byte, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write campaign: %w", err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil { // JSON is YAML
		return nil, fmt.Errorf("write campaign: %w", err)
	}
	root := doc.Content[0]
	plain(root)
	root.Style = 0
	if tasks := entry(root, "tasks"); tasks != nil {
		tasks.Style = 0
	}
	root.HeadComment = comment
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("write campaign: %w", err)
	}
	return out.Bytes(), enc.Close()
}

// plain removes the quotes of texts that need none.
func plain(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		n.Style = 0
	}
	for _, c := range n.Content {
		plain(c)
	}
}
