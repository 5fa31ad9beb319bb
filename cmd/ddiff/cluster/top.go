package cluster

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"ddiff/api"
	"ddiff/internal/cli"
	"ddiff/internal/record"
	"ddiff/internal/report/table"
)

// topEvery is the interval of the pictures of ddiff top.
const topEvery = 2 * time.Second

func newTopCommand() *cobra.Command {
	return verb(&cobra.Command{
		Use:   "top",
		Short: "Follow workers, rates and waiting work of a cluster",
		Long: "Show the campaigns that have not ended, with their rates and what waits, and the workers, again every two seconds until\n" +
			"Ctrl-C. Without a terminal, or with $NO_COLOR, they are shown once.",
		Args: cobra.NoArgs,
	}, func(cmd *cobra.Command, c *api.Client, _ []string) error {
		out := cmd.OutOrStdout()
		clear := cli.StyleOf(out).Clear()
		tick := time.NewTicker(topEvery)
		defer tick.Stop()
		for {
			if err := writeTop(cmd.Context(), c, out, clear); err != nil || clear == "" {
				return err
			}
			select {
			case <-cmd.Context().Done():
				return nil
			case <-tick.C:
			}
		}
	})
}

// writeTop writes one picture of the cluster.
func writeTop(ctx context.Context, c *api.Client, out io.Writer, clear string) error {
	campaigns, err := c.Campaigns(ctx, false)
	if err != nil {
		return err
	}
	workers, err := c.Workers(ctx)
	if err != nil {
		return err
	}
	open := slices.DeleteFunc(cli.Clean(campaigns.Campaigns), func(s record.CampaignStatus) bool { return s.Campaign.Phase.Ended() })
	rate, waiting := 0.0, 0
	for _, s := range open {
		rate, waiting = rate+s.Status.Rate, waiting+s.Status.Counts.Pending
	}
	fmt.Fprintf(out, "%s%d workers  %d campaigns  %d items wait  %.3g items/s\n\n", clear, len(workers.Workers), len(open), waiting, rate)
	t, more := table.NewWriter(out), columnsOf(open)
	fmt.Fprintln(t, "CAMPAIGN\t"+more.heads()+"PHASE\tCLASS\tWORKERS\tRUNNING\tPENDING\tDONE\tFAILED\tDEAD\tITEMS/S\tLEFT")
	for _, s := range open {
		c, st, n := s.Campaign, s.Status, s.Status.Counts
		fmt.Fprintf(t, "%s\t%s%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%.3g\t%s\n", c.ID, more.cells(c), c.Phase, c.Priority, st.Workers, n.Running, n.Pending, n.Done, n.Failed, n.Dead, st.Rate, left(st))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return writeWorkers(out, cli.Clean(workers.Workers))
}
