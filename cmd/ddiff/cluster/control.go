package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"ddiff/coordinator/board"
	"ddiff/internal/cli"
	"ddiff/manifest"
	"ddiff/queue"
)

// storeLimit is how long a command waits for a coordinator to store its request.
const storeLimit = 5 * time.Second

// newControlCommands are the verbs that change the wanted state of a campaign.
func newControlCommands() []*cobra.Command {
	verb := func(use, short, long string, wanted func() manifest.Wanted) *cobra.Command {
		var nats natsFlags
		cmd := &cobra.Command{
			Use: use + " CAMPAIGN", Short: short, Long: long, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return nats.withCampaign(cmd.Context(), args[0], func(b *queue.Board) error {
					c, err := board.Want(cmd.Context(), b, args[0], wanted())
					if err != nil {
						return refused(args[0], err)
					}
					limited, cancel := context.WithTimeout(cmd.Context(), storeLimit)
					defer cancel()
					if c, err = board.AwaitStored(limited, b, c); limited.Err() != nil && cmd.Context().Err() == nil {
						fmt.Fprintf(cmd.ErrOrStderr(), "note: no coordinator has stored the request within %v; repeat it if NATS loses its data meanwhile\n", storeLimit)
						err = nil
					}
					if err != nil {
						return err
					}
					fmt.Fprintf(cmd.OutOrStdout(), "%s: %s requested, now %s\n", c.ID, use, c.Phase)
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
		"Remove the waiting items of a campaign from the queue. Items in flight finish and results stay;\n"+
			"ddiff resume runs the remaining items.",
		func() manifest.Wanted {
			if now {
				return manifest.WantCancelNow
			}
			return manifest.WantCancel
		})
	cancel.Flags().BoolVar(&now, "now", false, "also stop items in flight at their next solver steps")
	return []*cobra.Command{
		verb("pause", "Pause a campaign", "Stop publishing the items of a campaign. Items in flight finish.", always(manifest.WantPause)),
		verb("resume", "Resume a paused, cancelled or rejected campaign",
			"Continue a paused or cancelled campaign, or start a rejected campaign again.", always(manifest.WantRun)),
		cancel,
	}
}

// refused turns a command that the state of the campaign does not allow into a usage error.
func refused(id string, err error) error {
	if errors.Is(err, board.ErrRefused) {
		return cli.Usage(err)
	}
	return unknownCampaign(id, err)
}

// order sends a command to the coordinator and prints its answer.
func order(cmd *cobra.Command, nats *natsFlags, id string, command manifest.Command) error {
	return nats.withCampaign(cmd.Context(), id, func(b *queue.Board) error {
		a, err := board.Command(cmd.Context(), b, id, command)
		if err != nil {
			return refused(id, err)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "published=%d\n", a.Items)
		return nil
	})
}
