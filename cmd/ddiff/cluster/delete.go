package cluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ddiff/api"
	"ddiff/internal/cli"
	"ddiff/internal/report/table"
)

// cleanOptions are the flags of delete and gc.
type cleanOptions struct {
	results bool
	yes     bool
	dryRun  bool
	json    bool
}

func (o *cleanOptions) add(f *pflag.FlagSet) {
	f.BoolVarP(&o.yes, "yes", "y", false, "delete without a question")
	f.BoolVar(&o.dryRun, "dry-run", false, "print what would be deleted")
	f.BoolVar(&o.json, "json", false, "print a JSON object")
}

func (o *cleanOptions) check() error {
	if o.yes && o.dryRun {
		return cli.Usage(errors.New("--yes and --dry-run exclude each other; give one of them"))
	}
	return nil
}

func newDeleteCommand() *cobra.Command {
	var o cleanOptions
	cmd := verb(&cobra.Command{
		Use:   "delete CAMPAIGN",
		Short: "Delete a campaign that has ended",
		Long: "Delete a campaign that has ended: its records, windows, checkpoints and report, and with --results also the\n" +
			"results that no other campaign with the same output refers to. After an interruption, the same command or ddiff gc completes\n" +
			"the deletion.",
		Example: "  ddiff delete night-photos-5f0c11d2 --results",
		Args:    cobra.ExactArgs(1),
		PreRunE: func(*cobra.Command, []string) error { return o.check() },
	}, func(cmd *cobra.Command, c *api.Client, args []string) error { return o.delete(cmd, c, args[0]) })
	cmd.Flags().BoolVar(&o.results, "results", false, "also delete results that no other campaign refers to")
	o.add(cmd.Flags())
	return cmd
}

func (o cleanOptions) delete(cmd *cobra.Command, c *api.Client, id string) error {
	if !o.yes {
		planned, err := c.Delete(cmd.Context(), id, o.results, true)
		if err != nil {
			return err
		}
		if o.dryRun {
			return o.print(cmd.OutOrStdout(), planned)
		}
		if err := writeRemovals(cmd.ErrOrStderr(), planned.Removals); err != nil {
			return err
		}
		if err := confirm(cmd, "Delete campaign "+id); err != nil {
			return err
		}
	}
	done, err := c.Delete(cmd.Context(), id, o.results, false)
	if err != nil {
		return err
	}
	return o.print(cmd.OutOrStdout(), done)
}

// confirm asks a question on standard error. Any answer but y or yes is a usage error.
func confirm(cmd *cobra.Command, question string) error {
	fmt.Fprintf(cmd.ErrOrStderr(), "%s? [y/N] ", question)
	answer, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return cli.Usage(fmt.Errorf("%s: not confirmed, nothing was deleted; answer y, or give --yes", cmd.Name()))
}

// print prints what was deleted, or would be.
func (o cleanOptions) print(out io.Writer, d api.Deleted) error {
	if o.json {
		return json.NewEncoder(out).Encode(d)
	}
	if err := writeRemovals(out, d.Removals); err != nil {
		return err
	}
	word := "no"
	if d.Deleted {
		word = "yes"
	}
	_, err := fmt.Fprintf(out, "objects=%d bytes=%d deleted=%s\n", d.Objects, d.Bytes, word)
	return err
}

func writeRemovals(out io.Writer, all []api.Removal) error {
	if len(all) == 0 {
		return nil
	}
	t := table.NewWriter(out)
	fmt.Fprintln(t, "KIND\tOF\tOBJECTS\tBYTES")
	for _, r := range cli.Clean(all) {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\n", r.Kind, r.Name, r.Objects, r.Bytes)
	}
	return t.Flush()
}
