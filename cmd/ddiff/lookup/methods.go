package lookup

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ddiff/coordinator/report/table"
	"ddiff/coordinator/shard"
	"ddiff/restore/method"
	"ddiff/restore/parameter"
)

func newMethodsCommand(c shard.Catalogue) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "methods", Short: "List the methods with their parameters", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runMethods(cmd.OutOrStdout(), c.Methods, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the preset rows and curves")
	return cmd
}

// methodInfo describes one method for scripts.
type methodInfo struct {
	Name       string          `json:"name"`
	About      string          `json:"about"`
	Citation   string          `json:"citation"`
	Steps      int             `json:"steps"`
	MaxSteps   int             `json:"max_steps,omitempty"` // 0: the length of the prior's schedule
	Parameters []parameterInfo `json:"parameters"`
	Presets    []presetInfo    `json:"presets"`
	Curves     []curveInfo     `json:"curves"`
}

type parameterInfo struct {
	Name    string           `json:"name"`
	Kind    string           `json:"kind"`
	Range   string           `json:"range"`
	Min     *float64         `json:"min,omitempty"`
	Max     *float64         `json:"max,omitempty"`
	Words   []string         `json:"words,omitempty"`
	Unit    string           `json:"unit,omitempty"`
	Default *parameter.Value `json:"default"` // null: a preset's row or the campaign must state the value
	Doc     string           `json:"doc"`
}

// presetInfo holds the values of a preset for a task. The other parameters have their defaults.
type presetInfo struct {
	Preset string                     `json:"preset"`
	Task   string                     `json:"task"`
	Steps  int                        `json:"steps"`
	Values map[string]parameter.Value `json:"values"`
	// ChosenOn has the SHA-256 of the image files with which the values were chosen, if they are known.
	ChosenOn []string `json:"chosen_on,omitempty"`
}

type curveInfo struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
}

// Methods returns the output of ddiff methods --json.
func Methods(methods method.Set) (json.RawMessage, error) { return json.Marshal(methodInfos(methods)) }

func methodInfos(methods method.Set) (infos []methodInfo) {
	for _, m := range methods.Infos() {
		info := methodInfo{Name: m.Name, About: m.About, Citation: m.Citation, Steps: m.Steps, MaxSteps: m.MaxSteps}
		for _, p := range m.Parameters {
			i := parameterInfo{Name: p.Name, Kind: p.Kind(), Range: p.Range(), Words: p.Words(), Unit: p.Unit, Doc: p.Doc}
			if !slices.Contains(m.Required, p.Name) {
				i.Default = new(p.Start())
			}
			if i.Kind == "number" || i.Kind == "integer" {
				i.Min, i.Max = &p.Min, &p.Max
			}
			info.Parameters = append(info.Parameters, i)
		}
		for _, r := range m.Rows {
			info.Presets = append(info.Presets, presetInfo(r))
		}
		for _, c := range m.Curves {
			info.Curves = append(info.Curves, curveInfo{c.Name, c.About})
		}
		infos = append(infos, info)
	}
	return infos
}

func runMethods(out io.Writer, methods method.Set, asJSON bool) error {
	infos := methodInfos(methods)
	if asJSON {
		return printJSON(out, infos)
	}
	w := table.NewWriter(out, table.Texts)
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
			fmt.Fprintln(w, "  "+strings.Join([]string{p.Name, p.Range, start, p.Doc}, "\t"))
		}
	}
	fmt.Fprintln(w, "\nT is the length of the prior's schedule, and the largest number of steps unless the method states one. Presets replace defaults task by task: ddiff tasks prints those of ddiff, ddiff methods --json those of all methods.")
	return w.Flush()
}
