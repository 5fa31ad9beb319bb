package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"ddiff/restore/item"
	"ddiff/restore/parameter"
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

// yamlDecoder decodes nodes into the types of a campaign and collects all problems with their lines, where the library's decoder stops
// at the first.
type yamlDecoder struct {
	file     string
	lines    map[string]int      // field path -> line
	swept    map[*yaml.Node]bool // lists that tasks have instead, see expandSweeps
	problems []*FieldError
}

func newYAMLDecoder(file string) *yamlDecoder {
	return &yamlDecoder{file: file, lines: map[string]int{}, swept: map[*yaml.Node]bool{}}
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

// scalarKinds has the tags of nodes that a value may have, and its description in errors.
var scalarKinds = map[reflect.Kind]struct {
	want string
	tags []string
}{
	reflect.String:  {"text (quote what looks like a number or true/false)", []string{"!!str", "!!timestamp"}},
	reflect.Int:     {"an integer", []string{"!!int"}},
	reflect.Uint64:  {"an integer from 0 to 18446744073709551615", []string{"!!int"}},
	reflect.Float64: {"a number", []string{"!!int", "!!float"}},
	reflect.Bool:    {"true or false", []string{"!!bool"}},
}

// decode decodes a node into the value that a pointer names. The fields of a mapping are those of the JSON form.
func (d *yamlDecoder) decode(n *yaml.Node, path string, into any) {
	v := reflect.ValueOf(into).Elem()
	switch into := into.(type) {
	case *Spec:
		d.mapping(n, path, v, map[string]field{
			"precision": d.stated(&into.Precision),
			"tile": func(n *yaml.Node, path string) {
				d.scalar(n, path, "auto, off, or a number of pixels", &into.Tile, "!!str", "!!int")
			},
		})
		return
	case *item.Task:
		d.task(n, path, into)
		return
	case *Split:
		d.split(n, path, into)
		return
	case **item.ValueRange:
		*into = d.valueRange(n, path)
		return
	case *item.Sigma:
		d.sigma(n, path, into)
		return
	case *parameter.Value:
		d.value(n, path, into)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.decode(n, path, v.Interface())
	case reflect.Struct:
		d.mapping(n, path, v, nil)
	case reflect.Slice:
		d.list(n, path, v)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		d.entries(n, path, func(key, value *yaml.Node, child string) {
			if d.accept(value, child) {
				element := reflect.New(v.Type().Elem())
				d.decode(value, child, element.Interface())
				v.SetMapIndex(reflect.ValueOf(key.Value), element.Elem())
			}
		})
	default:
		kind := scalarKinds[v.Kind()]
		d.scalar(n, path, kind.want, into, kind.tags...)
	}
}

// octal matches an integer that YAML 1.1 reads with base 8, and YAML 1.2 with base 10.
var octal = regexp.MustCompile(`^[-+]?0[0-9_]+$`)

// scalar decodes a node with one of the tags.
func (d *yamlDecoder) scalar(n *yaml.Node, path, want string, into any, tags ...string) {
	if _, text := into.(*string); !text && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!int" && octal.MatchString(n.Value) {
		d.problem(n, path, fmt.Errorf("%q begins with 0, which YAML may read with base 8; remove the 0", clip(n.Value)))
		return
	}
	if n.Kind != yaml.ScalarNode || !slices.Contains(tags, n.ShortTag()) || n.Decode(into) != nil {
		d.wrongType(n, path, want)
	}
}

// mapping decodes each field of a struct and refuses unknown and repeated fields. own has the fields that are decoded in another way.
func (d *yamlDecoder) mapping(n *yaml.Node, path string, v reflect.Value, own map[string]field) {
	fields := map[string]field{}
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			fields[name] = func(n *yaml.Node, path string) { d.decode(n, path, v.Field(i).Addr().Interface()) }
		}
	}
	maps.Copy(fields, own)
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
		if d.swept[value] {
			continue
		}
		child := key.Value
		if path != "" {
			child = path + "." + key.Value
		}
		d.lines[child] = key.Line
		visit(key, value, child)
	}
}

func (d *yamlDecoder) list(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.wrongType(n, path, "a list, as in [first, second]")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, element := range n.Content {
		child := fmt.Sprintf("%s[%d]", path, i)
		d.lines[child] = element.Line
		if d.accept(element, child) {
			d.decode(element, child, v.Index(i).Addr().Interface())
		}
	}
}

// stated decodes text that must not be empty: a person who writes the field wants to fix something.
func (d *yamlDecoder) stated(into any) field {
	return func(n *yaml.Node, path string) {
		if d.decode(n, path, into); n.Kind == yaml.ScalarNode && n.Value == "" {
			d.problem(n, path, errors.New("is empty; give a value or remove the field"))
		}
	}
}

func (d *yamlDecoder) valueRange(n *yaml.Node, path string) *item.ValueRange {
	var list []float64
	d.decode(n, path, &list)
	if len(list) != 2 {
		if n.Kind == yaml.SequenceNode {
			d.problem(n, path, fmt.Errorf("has %d values, want those of black and white, as in [0, 255]", len(list)))
		}
		return nil
	}
	return &item.ValueRange{list[0], list[1]}
}

func (d *yamlDecoder) sigma(n *yaml.Node, path string, s *item.Sigma) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && n.Value == item.SigmaAuto.String() {
		*s = item.SigmaAuto
		return
	}
	d.scalar(n, path, "a number or auto", s, "!!int", "!!float")
}

func (d *yamlDecoder) value(n *yaml.Node, path string, v *parameter.Value) {
	if n.ShortTag() == "!!str" && n.Value != "" {
		v.Word = n.Value
	} else {
		d.scalar(n, path, "a number or a word", &v.Number, "!!int", "!!float")
	}
}

func (d *yamlDecoder) task(n *yaml.Node, path string, t *item.Task) {
	if n.Kind == yaml.ScalarNode {
		d.decode(n, path, &t.Name)
		return
	}
	d.mapping(n, path, reflect.ValueOf(t).Elem(), map[string]field{
		"operator": d.stated(&t.Operator), "mask": d.stated(&t.Mask), "kernel": d.stated(&t.Kernel),
	})
	if t.Operator != "" && t.Name == "" {
		t.Name = OperatorName(t.Operator)
	}
}

// split reads the mapping of a split, whose field tune is a share or a list of patterns.
func (d *yamlDecoder) split(n *yaml.Node, path string, s *Split) {
	d.mapping(n, path, reflect.ValueOf(s).Elem(), map[string]field{"tune": func(n *yaml.Node, path string) {
		if n.Kind == yaml.SequenceNode {
			d.decode(n, path, &s.Tune)
			return
		}
		before := len(d.problems)
		d.scalar(n, path, "a share between 0 and 1, or a list of patterns", &s.Share, "!!int", "!!float")
		if s.Share == 0 && len(d.problems) == before {
			s.Share = -1 // a stated 0 is out of range
		}
	}})
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
