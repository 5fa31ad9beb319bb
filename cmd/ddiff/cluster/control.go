package cluster

import (
	"fmt"

	"github.com/spf13/cobra"

	"ddiff/api"
	"ddiff/internal/cli"
	"ddiff/internal/record"
)

// newControlCommands are the verbs that change the wanted state of a campaign.
func newControlCommands() []*cobra.Command {
	var interrupt bool
	control := func(use, short, long string, wanted record.Wanted) *cobra.Command {
		cmd := &cobra.Command{Use: use + " CAMPAIGN", Short: short, Long: long, Args: cobra.ExactArgs(1)}
		return verb(cmd, func(cmd *cobra.Command, c *api.Client, args []string) error {
			if interrupt {
				wanted = record.WantCancelNow
			}
			now, err := c.Want(cmd.Context(), args[0], wanted)
			if err != nil {
				return err
			}
			now = cli.Clean(now)
			why := ""
			if now.Reason != "" {
				why = ": " + now.Reason
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s requested, now %s%s\n", now.ID, use, now.Phase, why)
			return nil
		})
	}
	pause := control("pause", "Pause a campaign", "Stop publishing the items of a campaign. Items in flight finish.", record.WantPause)
	resume := control("resume", "Resume a paused, cancelled or rejected campaign",
		"Continue a paused or cancelled campaign, or start a rejected campaign again.", record.WantRun)
	cancel := control("cancel", "Cancel a campaign",
		"Remove the waiting items of a campaign from the queue. Items in flight finish and results stay;\n"+
			"ddiff resume runs the remaining items.", record.WantCancel)
	cancel.Flags().BoolVar(&interrupt, "now", false, "also stop items in flight at their next solver steps")
	return []*cobra.Command{pause, resume, cancel, newChangeCommand()}
}
