package cluster

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ddiff/api"
	"ddiff/internal/cli"
	"ddiff/internal/record"
)

func newLogsCommand() *cobra.Command {
	var asJSON bool
	cmd := verb(&cobra.Command{
		Use:   "logs CAMPAIGN [ITEM]",
		Short: "Show the workers' log lines about a campaign's items",
		Long: "Show the last log lines of the workers about the items of a campaign, also after the workers have ended: of each\n" +
			"attempt that did not restore its item, and of the rows that the coordinator cannot read. With ITEM, an id or the\n" +
			"beginning of an id, also of the attempt that restored it. A killed worker leaves no lines: its end is in the reason\n" +
			"that the next worker gives or, without one, on the page only.",
		Example: "  ddiff logs night-photos-5f0c11d2 3f2a9c",
		Args:    cobra.RangeArgs(1, 2),
		PreRunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 && args[1] == "" {
				return cli.Usage(errors.New("logs: ITEM is empty; give an id or the beginning of an id"))
			}
			return nil
		},
	}, func(cmd *cobra.Command, c *api.Client, args []string) error {
		item := strings.Join(args[1:], "")
		logs, err := c.Logs(cmd.Context(), args[0], item)
		if err != nil {
			return err
		}
		attempts := logs.Attempts
		switch {
		case len(attempts) == 0 && item != "":
			return cli.Usage(fmt.Errorf("campaign %s has no log of item %s: no attempt at it has ended", args[0], item))
		case len(attempts) == 0:
			fmt.Fprintln(cmd.ErrOrStderr(), "no worker has recorded a failed attempt at an item of the campaign; for the log of a restored item give its id")
			s, err := c.Campaign(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if reason := cmp.Or(s.Campaign.Reason, s.Status.Problem); reason != "" { // such as the end of the workers of a preflight
				fmt.Fprintf(cmd.ErrOrStderr(), "the campaign is %s: %s\n", s.Campaign.Phase, cli.Printable(reason))
			}
		case logs.More:
			fmt.Fprintf(cmd.ErrOrStderr(), "only the first %d attempts are shown, in the order of the items' ids; give an item for others\n", len(attempts))
		}
		if !asJSON {
			return writeAttempts(cmd.OutOrStdout(), attempts)
		}
		enc := json.NewEncoder(cmd.OutOrStdout())
		for _, a := range attempts {
			if err := enc.Encode(a); err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per attempt")
	return cmd
}

// writeAttempts writes one line for each attempt, with the log lines below it.
func writeAttempts(out io.Writer, attempts []record.AttemptLog) error {
	for _, a := range attempts {
		line := fmt.Sprintf("%.12s %s %s attempt=%d worker=%s outcome=%s at=%s", a.ID, a.Name, a.Task, a.Attempt, a.Worker, a.Outcome,
			a.At.UTC().Format(time.RFC3339))
		if a.TraceID != "" {
			line += " trace=" + a.TraceID
		}
		if a.Reason != "" {
			line += " reason=" + a.Reason
		}
		if _, err := fmt.Fprintln(out, cli.Printable(line)); err != nil {
			return err
		}
		for _, l := range a.Lines {
			if _, err := fmt.Fprintln(out, "  "+cli.Printable(l)); err != nil {
				return err
			}
		}
	}
	return nil
}
