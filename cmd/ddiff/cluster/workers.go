package cluster

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"ddiff/api"
	"ddiff/internal/record"
	"ddiff/internal/report/table"
	"ddiff/manifest"
)

func newWorkersCommand() *cobra.Command {
	var asJSON bool
	cmd := verb(&cobra.Command{
		Use:   "workers",
		Short: "List the workers of a cluster",
		Long: "List the workers of a cluster with their last heartbeats. A suspended worker leases nothing, or nothing of one\n" +
			"campaign, until its environment passes a test.",
		Args: cobra.NoArgs,
	}, func(cmd *cobra.Command, c *api.Client, _ []string) error {
		all, err := c.Workers(cmd.Context())
		if err != nil {
			return err
		}
		printSkipped(cmd, all.Skipped)
		return show(cmd, asJSON, all.Workers, writeWorkers)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the records as JSON")
	return cmd
}

func writeWorkers(out io.Writer, beats []record.Beat) error {
	w := table.NewWriter(out)
	fmt.Fprintln(w, "NAME\tPOOL\tDEVICE\tITEMS\tBEAT\tCAMPAIGN\tSTATE")
	for _, b := range beats {
		device := b.Provider
		if b.Device != "" {
			device += " " + b.Device
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%v ago\t%s\t%s\n", b.Name, cmp.Or(b.Pool, manifest.DefaultPool), device, b.Items, time.Duration(b.Age)*time.Second, b.Campaign, workerState(b))
	}
	return w.Flush()
}

// workerState describes a worker in a few words.
func workerState(b record.Beat) string {
	switch {
	case b.Hung != "":
		return b.Hung
	case b.Silent():
		return "silent: frozen, lost, or cut off from NATS"
	case b.Draining:
		return "draining"
	case b.Suspended != "":
		if b.SuspendedCampaign != "" {
			return "suspended from " + b.SuspendedCampaign + ": " + b.Suspended
		}
		return "suspended: " + b.Suspended
	}
	return "ready" + refusals(b)
}

// refusals names the campaigns of which a worker leases no items, and the reason of the first.
func refusals(b record.Beat) string {
	ids := slices.Sorted(maps.Keys(b.Refused))
	if len(ids) == 0 {
		return ""
	}
	text := ", leases nothing of " + ids[0] + ": " + b.Refused[ids[0]]
	if more := len(ids) - 1; more > 0 {
		text += fmt.Sprintf("; and of %d more campaigns", more)
	}
	return text
}
