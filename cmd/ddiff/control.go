package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"ddiff/coordinator"
	"ddiff/manifest"
	"ddiff/queue"
)

// newControlCommands are the verbs by which people say what they want of a campaign.
func newControlCommands() []*cobra.Command {
	verb := func(use, short, long string, wanted func() manifest.Wanted) *cobra.Command {
		var nats natsFlags
		cmd := &cobra.Command{
			Use: use + " CAMPAIGN", Short: short, Long: long, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return nats.withBoard(cmd.Context(), func(b *queue.Board) error {
					c, err := coordinator.Want(cmd.Context(), b, args[0], wanted())
					if err != nil {
						return refused(args[0], err)
					}
					fmt.Fprintf(cmd.OutOrStdout(), "%s: %s is asked for, it is %s\n", c.ID, use, c.Phase)
					return nil
				})
			},
		}
		nats.add(cmd)
		return cmd
	}
	always := func(w manifest.Wanted) func() manifest.Wanted { return func() manifest.Wanted { return w } }
	var now bool
	cancel := verb("cancel", "Cancel a campaign",
		"Drops the items of a campaign that were not begun; those under way are finished. What is done stays,\n"+
			"and resuming the campaign goes on from there.",
		func() manifest.Wanted {
			if now {
				return manifest.WantCancelNow
			}
			return manifest.WantCancel
		})
	cancel.Flags().BoolVar(&now, "now", false, "also stop the items that are under way, at their next solver steps")
	return []*cobra.Command{
		verb("pause", "Pause a campaign", "Hands out no more items of a campaign. Those under way are finished.", always(manifest.WantPause)),
		verb("resume", "Go on with a campaign that is paused, cancelled or was rejected",
			"Goes on with a campaign that is paused or cancelled, and takes up one anew that was rejected.", always(manifest.WantRun)),
		cancel,
	}
}

// refused marks what the campaign's state does not allow as the caller's mistake.
func refused(id string, err error) error {
	if errors.Is(err, coordinator.ErrRefused) {
		return usageError{err}
	}
	return unknownCampaign(id, err)
}

func newRetryCommand() *cobra.Command {
	var nats natsFlags
	var failed, dead bool
	var where string
	cmd := &cobra.Command{
		Use:   "retry CAMPAIGN",
		Short: "Try items again that failed or are dead",
		Long: "Tries the items of a campaign again that failed, are dead, or both. Rows of the dataset that could\n" +
			"not be read are read again. It waits for the coordinator's answer.",
		Example: "  ddiff retry night-photos-5f0c11d2 --failed --where 'reason=truncated'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			command := manifest.Command{Verb: manifest.CommandRetry}
			if failed {
				command.Outcomes = append(command.Outcomes, manifest.OutcomeFailed)
			}
			if dead {
				command.Outcomes = append(command.Outcomes, manifest.OutcomeDead)
			}
			if len(command.Outcomes) == 0 {
				return usageError{errors.New("say which items: --failed, --dead, or both")}
			}
			if where != "" {
				field, text, ok := strings.Cut(where, "=")
				if !ok || field != "reason" || text == "" {
					return usageError{fmt.Errorf("--where: %q is not reason=TEXT", where)}
				}
				command.Where = text
			}
			return order(cmd, &nats, args[0], command)
		},
	}
	f := cmd.Flags()
	nats.add(cmd)
	f.BoolVar(&failed, "failed", false, "items whose input could not be restored")
	f.BoolVar(&dead, "dead", false, "items that were given up")
	f.StringVar(&where, "where", "", "only items whose reason has a text in it: reason=TEXT")
	return cmd
}

func newReconcileCommand() *cobra.Command {
	var nats natsFlags
	cmd := &cobra.Command{
		Use:   "reconcile CAMPAIGN",
		Short: "Compare a campaign's manifest with its results, and publish the difference",
		Long: "Compares the manifest of a campaign with the results in storage and publishes what has none, in place\n" +
			"of what the queue holds. The coordinator does so by itself when the queue has lost items.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return order(cmd, &nats, args[0], manifest.Command{Verb: manifest.CommandReconcile})
		},
	}
	nats.add(cmd)
	return cmd
}

// order hands the coordinator a command and prints its answer.
func order(cmd *cobra.Command, nats *natsFlags, id string, command manifest.Command) error {
	return nats.withBoard(cmd.Context(), func(b *queue.Board) error {
		a, err := coordinator.Command(cmd.Context(), b, id, command)
		if err != nil {
			return refused(id, err)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "published=%d\n", a.Items)
		return nil
	})
}
