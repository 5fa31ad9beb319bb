package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"ddiff/api"
	"ddiff/internal/cli"
	"ddiff/manifest"
	"ddiff/queue"
)

// gather is the time between an event and the look that it causes: a burst of events causes few looks.
const gather = 5 * time.Second

func newAppendCommand() *cobra.Command {
	var every time.Duration
	var subject string
	var flags backendFlags
	cmd := &cobra.Command{
		Use:   "append CAMPAIGN [DATASET]",
		Short: "Add rows to a campaign",
		Long: "Add the rows of DATASET, a list, folder or address as dataset.path takes it, to a campaign that has read its dataset; without\n" +
			"DATASET the rows that its own dataset has now and did not have. Settings stay. A finished campaign runs again, and its report\n" +
			"then has all rows. The command waits for the coordinator's answer.",
		Example: "  ddiff append night-5f0c11d2\n" +
			"  ddiff append night-5f0c11d2 s3://datasets/more.csv\n" +
			"  ddiff append night-5f0c11d2 --every 10m\n" +
			"  ddiff append night-5f0c11d2 --every 1h --events minio.photos",
		Args: cobra.RangeArgs(1, 2),
		PreRunE: func(_ *cobra.Command, args []string) error {
			if every < 0 || every > 0 && len(args) > 1 {
				return cli.Usage(fmt.Errorf("--every: %v; give a positive time, and no DATASET, whose rows would be added each time", every))
			}
			if subject != "" && every == 0 {
				return cli.Usage(errors.New("--events needs --every: events may be lost"))
			}
			return nil
		},
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := asUser(cmd.Context())
		var a api.Append
		if len(args) > 1 {
			var err error
			if a.Path = args[1]; !manifest.IsAddress(a.Path) {
				if a.Path, err = filepath.Abs(a.Path); err != nil {
					return fmt.Errorf("append: %w", err)
				}
			}
		}
		var events <-chan struct{}
		if subject != "" {
			nc, err := flags.nats.connect(ctx, "ddiff-append", slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			defer nc.Close()
			var stop func()
			if events, stop, err = queue.Notified(nc, subject); err != nil {
				return err
			}
			defer stop()
		}
		return flags.with(ctx, func(b backend) error {
			return lookAgain(ctx, every, gather, events, func() error {
				done, err := b.Append(ctx, args[0], "", a)
				if err == nil {
					_, err = fmt.Fprintf(cmd.OutOrStdout(), "appended=%d\n", done.Items)
				}
				return err
			}, func(err error) { cmd.PrintErrln(err) })
		})
	}
	flags.add(cmd, roleUser)
	cmd.Flags().DurationVar(&every, "every", 0, "look for new rows again after this `time`, until Ctrl-C (default: once)")
	cmd.Flags().StringVar(&subject, "events", "", "with --every: also look after a message on this NATS `subject`, as of the notifications of a bucket")
	return cmd
}

// lookAgain looks once, or until ctx ends after each interval and a while after each event. An error of the first look ends it, and that the campaign
// does not exist; any other is told: the campaign may read rows of the last look, or no coordinator may lead.
func lookAgain(ctx context.Context, every, gather time.Duration, events <-chan struct{}, look func() error, tell func(err error)) error {
	for first := true; ; first = false {
		err := look()
		switch {
		case every == 0 || err != nil && (first || ctx.Err() != nil || errors.Is(err, api.ErrNotFound)):
			return err
		case err != nil:
			tell(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
			continue
		case <-events:
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(gather):
		}
		select {
		case <-events: // the look sees what it tells of
		default:
		}
	}
}
