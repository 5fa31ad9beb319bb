package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"ddiff/api"
	"ddiff/internal/cli"
	"ddiff/internal/retry"
	"ddiff/manifest"
)

func newAppendCommand() *cobra.Command {
	var every time.Duration
	cmd := verb(&cobra.Command{
		Use:   "append CAMPAIGN [DATASET]",
		Short: "Add rows to a campaign",
		Long: "Add the rows of DATASET, a list, folder or address as dataset.path takes it, to a campaign that has read its dataset; without\n" +
			"DATASET the rows that its own dataset has now and did not have, and those that were never restored and have other bytes now.\n" +
			"Settings stay. A finished campaign runs again, and its report then has all rows. A file that was overwritten after it was done is\n" +
			"counted; its result stays. The command waits for the coordinator's answer.",
		Example: "  ddiff append night-5f0c11d2\n" +
			"  ddiff append night-5f0c11d2 s3://datasets/more.csv\n" +
			"  ddiff append night-5f0c11d2 --every 10m",
		Args: cobra.RangeArgs(1, 2),
		PreRunE: func(_ *cobra.Command, args []string) error {
			if every < 0 || every > 0 && len(args) > 1 {
				return cli.Usage(fmt.Errorf("--every: %v; give a positive time, and no DATASET, whose rows would be added each time", every))
			}
			return nil
		},
	}, func(cmd *cobra.Command, c *api.Client, args []string) error {
		var a api.Append
		if len(args) > 1 {
			var err error
			if a.Path = args[1]; !manifest.IsAddress(a.Path) {
				if a.Path, err = filepath.Abs(a.Path); err != nil {
					return fmt.Errorf("append: %w", err)
				}
			}
		}
		return lookAgain(cmd.Context(), every, func() error {
			done, err := c.Append(cmd.Context(), args[0], "", a)
			if err == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "appended=%d overwritten=%d\n", done.Items, done.Overwritten)
			}
			if done.Overwritten > 0 {
				cmd.PrintErrf("note: %s; the results are of the former bytes: submit the dataset again under another name for new ones\n", overwritten(done))
			}
			return err
		}, func(err error) { cmd.PrintErrln(err) })
	})
	cmd.Flags().DurationVar(&every, "every", 0, "look for new rows again after this `time`, until Ctrl-C (default: once)")
	return cmd
}

// overwritten names the files whose results are of other bytes.
func overwritten(a api.Appended) string {
	if a.Overwritten == 1 {
		return fmt.Sprintf("%q was overwritten after it was done", a.Example)
	}
	return fmt.Sprintf("%d files, such as %q, were overwritten after they were done", a.Overwritten, a.Example)
}

// lookAgain looks once, or until ctx ends after each interval. An error of the first look ends it, and that the campaign does not exist; any other is
// told: the campaign may read rows of the last look, or no coordinator may lead.
func lookAgain(ctx context.Context, every time.Duration, look func() error, tell func(err error)) error {
	for first := true; ; first = false {
		err := look()
		switch {
		case every == 0 || err != nil && (first || ctx.Err() != nil || errors.Is(err, api.ErrNotFound)):
			return err
		case err != nil:
			tell(err)
		}
		if err := retry.Sleep(ctx, every); err != nil {
			return err
		}
	}
}
