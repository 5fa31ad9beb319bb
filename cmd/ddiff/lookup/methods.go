package lookup

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"ddiff/coordinator/report/table"
	"ddiff/coordinator/shard"
	"ddiff/internal/cli/catalogue"
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

func runMethods(out io.Writer, methods method.Set, asJSON bool) error {
	infos := catalogue.Methods(methods)
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
