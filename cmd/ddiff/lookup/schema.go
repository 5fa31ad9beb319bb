package lookup

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/restore/parameter"
)

func newSchemaCommand(c manifest.Catalogue) *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON schema of campaign files, for editors", Args: cobra.NoArgs,
		Long: "Print the JSON schema (draft 2020-12) of campaign files. An editor with a YAML language server then\n" +
			"completes fields, tasks, methods and parameters, explains them and marks wrong ones. Name the schema\n" +
			"in the first line of the campaign file:\n" +
			"  # yaml-language-server: $schema=ddiff.schema.json",
		Example: "  ddiff schema > ddiff.schema.json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return printJSON(cmd.OutOrStdout(), campaignSchema(c)) },
	}
}

// schema is a JSON schema.
type schema map[string]any

// campaignSchema returns the schema of the files that [manifest.Parse] reads: the fields are those of the types, and their descriptions
// the comments of these.
func campaignSchema(c manifest.Catalogue) schema {
	f := fields{comments: manifest.Comments(), solver: map[string]any{}, params: map[string]any{}}
	for _, m := range c.Methods.Infos() {
		for _, p := range m.Parameters {
			f.add(f.solver, p, m.Name)
		}
	}
	for _, d := range c.Operators.Tasks() {
		for _, p := range d.Parameters {
			f.add(f.params, p, d.Name)
		}
	}
	f.tasks, f.methods, f.presets = c.Operators.Names(), c.Methods.Names(), c.Methods.Presets()
	out := f.of(reflect.TypeFor[manifest.Spec]())
	out["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	out["title"] = "Campaign of ddiff"
	out["required"] = []string{"dataset", "tasks"}
	out["$defs"] = schema{"solver": schema{"type": "object", "properties": f.solver, "additionalProperties": false}}
	return out
}

// fields makes the schemas of the types of a campaign file.
type fields struct {
	comments                map[string]string
	tasks, methods, presets []string
	solver, params          map[string]any
}

// add adds the parameter of a method or a task. Those of one name share a schema, which names all that have it.
func (f *fields) add(to map[string]any, p parameter.Parameter, of string) {
	text := fmt.Sprintf("%s: %s, %s", of, p.Doc, p.Range())
	if known, ok := to[p.Name].(schema); ok {
		known["description"] = fmt.Sprint(known["description"], "; ", text)
		return
	}
	value := anyParameter()
	value["description"] = text
	to[p.Name] = value
}

// anyParameter is the schema of a value of a parameter. A list is one task for each of its values.
func anyParameter() schema {
	value := schema{"type": []string{"number", "string"}}
	return either(value, list(value))
}

// one is the schema of one of the texts.
func one[T ~string](names ...T) schema { return schema{"enum": names} }

func list(of schema) schema { return schema{"type": "array", "items": of} }

func either(schemas ...schema) schema { return schema{"anyOf": schemas} }

// of returns the schema of a type.
func (f *fields) of(t reflect.Type) schema {
	switch t {
	case reflect.TypeFor[item.Sigma]():
		return either(schema{"type": "number", "minimum": 0, "maximum": 1}, one("auto"))
	case reflect.TypeFor[item.ValueRange]():
		return schema{"type": "array", "items": schema{"type": "number"}, "minItems": 2, "maxItems": 2}
	case reflect.TypeFor[manifest.Precision]():
		return one(manifest.PrecisionFloat32, manifest.PrecisionBFloat16, manifest.PrecisionFloat16, manifest.PrecisionAuto)
	case reflect.TypeFor[manifest.Selection]():
		return one(manifest.Selections()...)
	case reflect.TypeFor[manifest.Side]():
		return one(manifest.SideAll, manifest.SideTune, manifest.SideTest)
	case reflect.TypeFor[item.Fit]():
		return one(item.Fits()...)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return f.of(t.Elem())
	case reflect.Slice:
		return list(f.of(t.Elem()))
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": f.of(t.Elem())}
	case reflect.Struct:
		return f.mapping(t)
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Int, reflect.Uint64:
		return schema{"type": "integer"}
	case reflect.Float64:
		return schema{"type": "number"}
	default:
		return schema{"type": "string"}
	}
}

// mapping returns the schema of a struct.
func (f *fields) mapping(t reflect.Type) schema {
	properties := schema{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		path := t.Name() + "." + name
		value := f.special(path)
		if value == nil {
			value = f.of(t.Field(i).Type)
		}
		if swept := []string{"sigma", "photons", "steps"}; slices.Contains(swept, name) { // a list is one task for each of its values
			value = either(value, list(value))
		}
		value["description"] = f.comments[path]
		properties[name] = value
	}
	return schema{"type": "object", "properties": properties, "additionalProperties": false}
}

// special returns the schema of a field whose values its type does not tell, or nil.
func (f *fields) special(path string) schema {
	switch path {
	case "Spec.tasks":
		return list(either(one(f.tasks...), f.of(reflect.TypeFor[item.Task]())))
	case "Task.name":
		return either(one(f.tasks...), schema{"type": "string"})
	case "Spec.float32", "Spec.left_out":
		return list(either(one(f.tasks...), schema{"type": "string"}))
	case "Spec.methods", "Task.methods":
		return list(one(f.methods...))
	case "Spec.preset":
		return one(f.presets...)
	case "Spec.prior":
		return schema{"type": "string", "examples": []string{manifest.PriorBundled, "prior.onnx"}}
	case "Spec.tile":
		return either(one("auto", "off"), schema{"type": "integer"})
	case "Split.tune":
		return either(schema{"type": "number"}, list(schema{"type": "string"}))
	case "Spec.solver", "Task.solver":
		return schema{"$ref": "#/$defs/solver"}
	case "Task.params": // a person's own operators have parameters of their own
		return schema{"type": "object", "properties": f.params, "additionalProperties": anyParameter()}
	}
	return nil
}
