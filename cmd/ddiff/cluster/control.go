package cluster

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"ddiff/coordinator/serve/cluster"
	"ddiff/internal/cli"
	"ddiff/manifest"
)

// newControlCommands are the verbs that change the wanted state of a campaign.
func newControlCommands() []*cobra.Command {
	var budget string
	verb := func(use, short, long string, wanted func() manifest.Wanted) *cobra.Command {
		var flags backendFlags
		cmd := &cobra.Command{
			Use: use + " CAMPAIGN", Short: short, Long: long, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				if budget != "" {
					if err := new(manifest.Budget).Set(budget); err != nil { // before anything is opened
						return cli.Usage(fmt.Errorf("--budget: %w", err))
					}
				}
				return flags.with(cmd.Context(), func(b backend) error {
					if budget != "" {
						if err := changeBudget(cmd.Context(), b, args[0], budget); err != nil {
							return err
						}
					}
					c, err := b.Want(cmd.Context(), args[0], wanted())
					if err != nil {
						return err
					}
					if !c.Stored {
						fmt.Fprintf(cmd.ErrOrStderr(), "note: no coordinator has stored the request within %v; repeat it if NATS loses its data meanwhile\n", cluster.StoreLimit)
					}
					fmt.Fprintf(cmd.OutOrStdout(), "%s: %s requested, now %s\n", c.ID, use, c.Phase)
					return nil
				})
			},
		}
		flags.add(cmd)
		return cmd
	}
	always := func(w manifest.Wanted) func() manifest.Wanted { return func() manifest.Wanted { return w } }
	var now bool
	cancel := verb("cancel", "Cancel a campaign",
		"Remove the waiting items of a campaign from the queue. Items in flight finish and results stay;\n"+
			"ddiff resume runs the remaining items.",
		func() manifest.Wanted {
			if now {
				return manifest.WantCancelNow
			}
			return manifest.WantCancel
		})
	cancel.Flags().BoolVar(&now, "now", false, "also stop items in flight at their next solver steps")
	resume := verb("resume", "Resume a paused, cancelled or rejected campaign",
		"Continue a paused or cancelled campaign, or start a rejected campaign again.", always(manifest.WantRun))
	resume.Flags().StringVar(&budget, "budget", "", "first change these `limits` of the campaign's budget, as in seconds=7200,cost=10; 0 removes one")
	return []*cobra.Command{
		verb("pause", "Pause a campaign", "Stop publishing the items of a campaign. Items in flight finish.", always(manifest.WantPause)),
		resume, cancel,
	}
}

// changeBudget changes the limits of a campaign that a flag names.
func changeBudget(ctx context.Context, b backend, id, flag string) error {
	s, err := b.Campaign(ctx, id)
	if err != nil {
		return err
	}
	limits := s.Campaign.Spec.Budget
	if err := limits.Set(flag); err != nil {
		return cli.Usage(fmt.Errorf("--budget: %w", err))
	}
	_, err = b.SetBudget(ctx, id, limits)
	return err
}
