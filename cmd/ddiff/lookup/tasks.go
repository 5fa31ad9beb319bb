// Package lookup has the commands that describe and check tasks, methods, priors and operator files.
//
// A command is one file and one name in [Commands].
package lookup

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ddiff/internal/cli"
	"ddiff/internal/cli/catalogue"
	"ddiff/internal/report/table"
	"ddiff/manifest"
	"ddiff/restore/method"
	"ddiff/restore/parameter"
)

func newTasksCommand(c manifest.Catalogue) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "tasks [TASK]", Short: "List the tasks and presets with their parameters", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runTasks(cmd.OutOrStdout(), c, args, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func runTasks(out io.Writer, c manifest.Catalogue, args []string, asJSON bool) error {
	infos, total, err := catalogue.Tasks(c)
	if err != nil {
		return err
	}
	if infos, err = chosen("task", args, infos, func(t catalogue.Task) string { return t.Name }); err != nil {
		return err
	}
	if asJSON {
		return printJSON(out, infos)
	}
	methods, first := c.Methods, c.Methods.Infos()[0]
	w := table.NewWriter(out)
	fmt.Fprintln(w, "TASK\tPARAMETERS\tWHAT IS MEASURED")
	for _, t := range infos {
		var params []string
		for _, k := range slices.Sorted(maps.Keys(t.Params)) {
			params = append(params, fmt.Sprintf("%s=%g", k, t.Params[k]))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", t.Name, strings.Join(params, " "), t.About)
	}
	// The columns are the parameters that a preset sets.
	columns := slices.DeleteFunc(slices.Clone(first.Parameters), func(p parameter.Parameter) bool {
		return !slices.ContainsFunc(first.Rows, func(r method.Row) bool { _, ok := r.Values[p.Name]; return ok })
	})
	fmt.Fprintln(w, strings.ToUpper(strings.Join(append([]string{"\npreset", "task", "steps"}, columns.Names()...), "\t")))
	for _, name := range methods.Presets() {
		rows := infos
		if _, ok := first.Row(name, method.OtherTasks); ok && len(args) == 0 {
			s, err := methods.Resolve(method.Request{Method: first.Name, Preset: name, Task: method.OtherTasks}, total)
			if err != nil {
				return err
			}
			rows = append(slices.Clone(infos), catalogue.Task{Name: method.OtherTasks, Presets: map[string]method.Settings{name: s}})
		}
		for _, t := range rows {
			s := t.Presets[name]
			fmt.Fprintf(w, "%s\t%s\t%d", name, t.Name, s.Steps)
			for _, p := range columns {
				v := s.Value(p.Name)
				if p.Off != "" && v == parameter.Number(float64(total-1)) {
					v = parameter.Word(parameter.None)
				}
				if !s.Has(p) {
					v = parameter.Word("-")
				}
				fmt.Fprintf(w, "\t%v", v)
			}
			fmt.Fprintln(w)
		}
	}
	fmt.Fprintf(w, "\nThe presets are those of %s; ddiff methods lists the other methods: %s.\n", first.Name, strings.Join(methods.Names()[1:], ", "))
	if len(args) == 0 {
		fmt.Fprintf(w, "The task %s stands for those of operators from files.\n", method.OtherTasks)
	}
	fmt.Fprintln(w, "A value shown as - has no effect.")
	fmt.Fprintln(w, "Lengths (size, std, margin) and gamma0 are for 256 pixels and scale with the image.")
	return w.Flush()
}

// chosen returns the entry whose name is the argument, or all entries without an argument.
func chosen[T any](kind string, args []string, all []T, name func(T) string) ([]T, error) {
	if len(args) == 0 {
		return all, nil
	}
	var names []string
	for i, v := range all {
		if name(v) == args[0] {
			return all[i : i+1], nil
		}
		names = append(names, name(v))
	}
	return nil, cli.Usage(manifest.Unknown(kind, args[0], names))
}

func printJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func newMethodsCommand(c manifest.Catalogue) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "methods [METHOD]", Short: "List the methods with their parameters", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runMethods(cmd.OutOrStdout(), c.Methods, args, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the preset rows and curves")
	return cmd
}

func runMethods(out io.Writer, methods method.Set, args []string, asJSON bool) error {
	infos, err := chosen("method", args, catalogue.Methods(methods), func(m catalogue.Method) string { return m.Name })
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(out, infos)
	}
	w := table.NewWriter(out)
	for i, m := range infos {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %s\n  %s\n  %d steps by default", m.Name, m.About, m.Citation, m.Steps)
		if m.MaxSteps > 0 {
			fmt.Fprintf(w, ", at most %d", m.MaxSteps)
		}
		fmt.Fprintln(w)
		fmt.Fprintln(w, "  PARAMETER\tRANGE\tDEFAULT\tMEANING")
		for _, p := range m.Parameters {
			start := parameter.None
			if p.Default != nil {
				start = p.Default.String()
			}
			doc := p.Doc
			if len(p.With) > 0 {
				doc = fmt.Sprintf("with %s: %s", strings.Join(p.With, " or "), doc)
			}
			fmt.Fprintln(w, "  "+strings.Join([]string{p.Name, p.Range, start, doc}, "\t"))
		}
	}
	fmt.Fprintln(w, "\nT is the length of the prior's schedule, and the largest number of steps unless the method states one. Presets replace defaults task by task: ddiff tasks prints those of ddiff, ddiff methods --json those of all methods.")
	return w.Flush()
}

// Commands returns the commands of the package for the methods and operators of a catalogue, in the order of the help.
func Commands(c manifest.Catalogue) []*cobra.Command {
	return []*cobra.Command{newTasksCommand(c), newMethodsCommand(c), newPriorCommand(), newOperatorCommand(), newSchemaCommand(c)}
}
