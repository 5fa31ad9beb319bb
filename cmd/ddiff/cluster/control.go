package cluster

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"ddiff/api"
	"ddiff/internal/cli"
	"ddiff/internal/record"
	"ddiff/manifest"
)

// newControlCommands are the verbs that change the wanted state of a campaign.
func newControlCommands() []*cobra.Command {
	var budget string
	var interrupt bool
	control := func(use, short, long string, wanted record.Wanted) *cobra.Command {
		cmd := &cobra.Command{Use: use + " CAMPAIGN", Short: short, Long: long, Args: cobra.ExactArgs(1)}
		cmd.PreRunE = func(*cobra.Command, []string) error {
			if budget == "" {
				return nil
			}
			return usageOf("--budget", new(manifest.Budget).Set(budget))
		}
		return verb(cmd, func(cmd *cobra.Command, c *api.Client, args []string) error {
			if budget != "" {
				if err := changeBudget(cmd.Context(), c, args[0], budget); err != nil {
					return err
				}
			}
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
	resume.Flags().StringVar(&budget, "budget", "", "first change these `limits` of the campaign's budget, as in seconds=7200,cost=10; 0 removes one")
	cancel := control("cancel", "Cancel a campaign",
		"Remove the waiting items of a campaign from the queue. Items in flight finish and results stay;\n"+
			"ddiff resume runs the remaining items.", record.WantCancel)
	cancel.Flags().BoolVar(&interrupt, "now", false, "also stop items in flight at their next solver steps")
	return []*cobra.Command{pause, resume, cancel}
}

// usageOf returns the error of a flag's value as one of usage, nil without an error.
func usageOf(flag string, err error) error {
	if err == nil {
		return nil
	}
	return cli.Usage(fmt.Errorf("%s: %w", flag, err))
}

func changeBudget(ctx context.Context, c *api.Client, id, flag string) error {
	s, err := c.Campaign(ctx, id)
	if err != nil {
		return err
	}
	limits := s.Campaign.Spec.Budget
	if err := usageOf("--budget", limits.Set(flag)); err != nil {
		return err
	}
	_, err = c.SetBudget(ctx, id, limits)
	return err
}
