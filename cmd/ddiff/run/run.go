// Package run has the commands ddiff run, ddiff restore and ddiff session, which restore images in this process.
//
// Both read their flags into [campaign.Options] and run the campaign with package embedded. The package adds the plan of a
// dry run, and the restored pictures of ddiff restore beside their inputs.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"ddiff/internal/cli"
	"ddiff/internal/cli/campaign"
	"ddiff/internal/cli/embedded"
	"ddiff/internal/cli/localpage"
	"ddiff/internal/cli/resultname"
	"ddiff/internal/coordinator/serve/output"
	"ddiff/internal/report"
	"ddiff/internal/report/result"
	"ddiff/manifest"
	"ddiff/storage"
)

func newRunCommand(c manifest.Catalogue) *cobra.Command {
	o := campaign.Options{ComputeOptions: cli.ComputeOptions{Catalogue: c}}
	cmd := &cobra.Command{
		Use:   "run [CAMPAIGN.yaml | IMAGES...]",
		Short: "Degrade images, restore them and compare: a campaign on this machine",
		Long: "Run a campaign in this process: coordinator, JetStream queue and one worker. Rerun the same command\n" +
			"after an interruption to resume; finished items are not computed again.\n\n" +
			"The arguments are one campaign file (.yaml, .yml) or any number of images, directories, quoted globs,\n" +
			"lists (.csv, .jsonl, .txt, .parquet), archives (.tar), s3:// and https:// addresses. Images need --task or\n" +
			"--operator.\n" +
			"Flags override the campaign file. Results are under items/ID in --out, links with readable names under\n" +
			"restored/, and the report in index.html.",
		Example: "  ddiff run photo.png --task super_resolution\n" +
			"  ddiff run photos/*.jpg --task all --out out/photos\n" +
			"  ddiff run photos --task gaussian_deblur --param std=5 \\\n      --solver lambda=4 --dry-run\n" +
			"  ddiff run examples/demo.yaml --limit 5",
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, skipped, err := o.Read(cmd.Flags(), args)
			if err != nil {
				return err
			}
			stdout, stderr := cmd.OutOrStdout(), cmd.ErrOrStderr()
			if !o.JSON {
				fmt.Fprint(stderr, skipped.Report(o.Quiet))
			}
			if note := campaign.DefaultsNote(spec); note != "" && !o.JSON && !o.Quiet {
				fmt.Fprintln(stderr, note)
			}
			if note := o.Catalogue.EqualRuns(spec); note != "" { // also beside JSON
				fmt.Fprintln(stderr, cli.Printable("warning: "+note))
			}
			if o.DryRun {
				return dryRun(cmd.Context(), spec, o, skipped, stdout, stderr)
			}
			err = runEmbedded(cmd.Context(), spec, o, skipped, stdout, stderr)
			if code := cli.ExitCode(err); slices.Contains([]int{cli.ExitDone, cli.ExitIncomplete, cli.ExitInterrupted}, code) {
				resultname.Link(cmd.Context(), spec.Output, stderr)
			}
			return err
		},
	}
	f := cmd.Flags()
	o.AddMain(f)
	f.BoolVar(&o.DryRun, "dry-run", false, "print the items to run, those already done, and how long it takes; write nothing")
	f.BoolVar(&o.OpenPage, "open", false, "show the campaign in the browser while it runs, until Ctrl-C")
	f.BoolVar(&o.JSON, "json", false, "print one JSON object per finished item, and one with the counts")
	f.BoolVarP(&o.Quiet, "quiet", "q", false, "print no progress, only the table and the counts")
	o.AddSettings(f)
	f.StringVar(&o.Measurement, "measurement", "", "measurements to restore, as a single `path` or address: pictures or .npy files, in place of images")
	o.Measurements.Add(f)
	o.AddParts(f)
	return cmd
}

// runEmbedded runs a campaign with everything in this process.
func runEmbedded(ctx context.Context, spec *manifest.Spec, o campaign.Options, skipped manifest.Skips, stdout, stderr io.Writer) error {
	var page *localpage.Page
	err := embedded.WithCampaign(ctx, spec, o, stdout, stderr, func(e embedded.Campaign) (err error) {
		if o.OpenPage {
			live := output.NewLive(spec, result.Output{Address: spec.Output, Store: e.Store})
			e.Read, e.Settled = live.Entered, live.Settled
			defer func() { live.Ended(err) }()
			if page, err = localpage.Start(ctx, live, 0); err != nil {
				return err
			}
			page.Show(ctx, stderr)
		}
		e.LeftOut = skipped
		if o.JSON { // otherwise they were reported
			e.Show.LeaveOut(skipped)
		}
		say := sync.OnceFunc(func() {
			e.Show.Say("report: " + storage.Locate(spec.Output, report.KeyPage) + " has the results so far; reload it, it grows to the end")
		})
		e.Reported = func() {
			resultname.Link(ctx, spec.Output, stderr)
			say()
		}
		return e.Run(ctx, stdout, o.JSON)
	})
	if page != nil && ctx.Err() == nil {
		page.Show(ctx, stderr)
		return errors.Join(err, page.Wait(ctx))
	}
	return err
}

// Commands returns the commands of the package for the methods and operators of a catalogue, in the order of the help; of names, only those.
func Commands(c manifest.Catalogue, names ...string) []*cobra.Command {
	var commands []*cobra.Command
	for _, one := range []struct {
		name string
		make func(c manifest.Catalogue) *cobra.Command
	}{{"restore", newRestoreCommand}, {"run", newRunCommand}, {"session", newSessionCommand}} {
		if len(names) == 0 || slices.Contains(names, one.name) {
			commands = append(commands, one.make(c))
		}
	}
	return commands
}
