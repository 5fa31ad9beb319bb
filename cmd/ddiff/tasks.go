package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ddiff/restore/operator"
	"ddiff/restore/solver"
)

func newTasksCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "tasks", Short: "List the tasks, methods and presets with their parameters", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runTasks(cmd.OutOrStdout(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// taskInfo is one task with its settings in every preset.
type taskInfo struct {
	Name    string                   `json:"name"`
	About   string                   `json:"about"`
	Params  map[string]float64       `json:"params"`
	Presets map[string]solver.Config `json:"presets"`
}

func runTasks(out io.Writer, asJSON bool) error {
	var infos []taskInfo
	for _, t := range operator.Builtin() {
		params, err := t.Parameters.Complete(nil)
		if err != nil {
			return err
		}
		info := taskInfo{t.Name, t.Doc, params, map[string]solver.Config{}}
		for _, p := range solver.Presets() {
			c, err := solver.Preset(p, t.Name)
			if err != nil {
				return err
			}
			info.Presets[p] = c
		}
		infos = append(infos, info)
	}
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(infos)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TASK\tPARAMETERS\tWHAT IS MEASURED")
	for _, t := range infos {
		var params []string
		for _, k := range slices.Sorted(maps.Keys(t.Params)) {
			params = append(params, fmt.Sprintf("%s=%g", k, t.Params[k]))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", t.Name, strings.Join(params, " "), t.About)
	}
	fmt.Fprintln(w, "\nPRESET\tTASK\tSTEPS\tGAMMA0\tA\tB\tT_GAMMA\tT0\tSIGMA_RULE")
	for _, p := range solver.Presets() {
		for _, t := range infos {
			c := t.Presets[p]
			fmt.Fprintf(w, "%s\t%s\t%d\t%g\t%g\t%g\t%d\t%d\t%s\n", p, t.Name, c.Steps, c.Gamma0, c.A, c.B, c.TGamma, c.T0, c.SigmaRule)
		}
	}
	fmt.Fprintln(w, "\nLengths (size, std, margin) and gamma0 are for 256 pixels and scale with the image.")
	fmt.Fprintln(w, "METHODS: ddiff, ddiff_hqs (no dual variable), diff_pnp_admm (no noise), diff_pnp_hqs (neither)")
	return w.Flush()
}
