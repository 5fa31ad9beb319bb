package cluster

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"ddiff/api"
	"ddiff/internal/cli"
	"ddiff/internal/cli/campaign"
	"ddiff/internal/record"
	"ddiff/internal/regular"
	"ddiff/internal/restore/prior"
	"ddiff/manifest"
	"ddiff/restore/parameter"
)

// submitOptions are the flags of submit.
type submitOptions struct {
	order    api.Order
	priority string
	// precision replaces the campaign's.
	precision manifest.Precision
	name      string // of the campaign, in place of the file's
	watch     bool
	json      bool
}

func newSubmitCommand(c manifest.Catalogue) *cobra.Command {
	var o submitOptions
	c.New = true
	cmd := verb(&cobra.Command{
		Use:   "submit CAMPAIGN.yaml",
		Short: "Submit a campaign to a cluster",
		Long: "Submit a campaign to the cluster and print its id. A second submission starts nothing: it\n" +
			"prints the campaign's phase, and brings an archived campaign back to the board.\n" +
			"Coordinators and workers resolve the paths in the file on their own machines. Results go to the\n" +
			"folder --output below the cluster's store.",
		Example: "  ddiff submit examples/demo.yaml --watch\n" +
			"  ddiff submit night.yaml --server https://host:8620",
		Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, client *api.Client, args []string) error {
		spec, err := manifest.Load(args[0])
		if err != nil {
			return cli.Usage(spec.Problems(err, c))
		}
		own, files, err := campaign.SubmittedOperators(c, spec)
		if err != nil {
			return err
		}
		o.order.Operators = files
		if o.order.PriorSHA256, err = submittedPrior(spec.Prior); err != nil {
			return err
		}
		if cmd.Flags().Changed("name") {
			spec.Name = o.name
			spec.Override("name", "--name")
		}
		if cmd.Flags().Changed("precision") {
			spec.Precision = o.precision
			spec.Override("precision", "--precision")
		}
		if err := spec.Validate(own); err != nil {
			return cli.Usage(err)
		}
		order := o.order
		if order.Priority = record.Priority(o.priority); !cmd.Flags().Changed("priority") {
			order.Priority = ""
		}
		switch {
		case !cmd.Flags().Changed("weight"):
			order.Weight = 0
		case order.Weight == 0:
			return cli.Usage(fmt.Errorf("--weight: 0 is outside 1..%d", record.MaxWeight))
		}
		done, err := client.SubmitSpec(cmd.Context(), spec, order)
		if err != nil {
			return err
		}
		if note := outputNote(spec, o.order.Output, done); note != "" && !o.json {
			fmt.Fprintln(cmd.ErrOrStderr(), cli.Printable(note))
		}
		if done.Warning != "" && !o.json {
			fmt.Fprintln(cmd.ErrOrStderr(), cli.Printable("warning: "+done.Warning))
		}
		if err := printSubmitted(cmd.OutOrStdout(), done, o.json); err != nil || !o.watch {
			return err
		}
		return watch(cmd.Context(), client, done.ID, o.json, cmd.OutOrStdout(), cmd.ErrOrStderr())
	})
	f := cmd.Flags()
	f.StringVar(&o.name, "name", "", "`name` of the campaign, in place of the file's: another name is another campaign, as of each night")
	f.StringVar(&o.order.Output, "output", "", "`folder` for the results below the cluster's store, not campaigns or priors (default: the campaign's id)")
	f.StringVar(&o.priority, "priority", string(record.PriorityNormal), "priority `class`: high, normal or low; a class waits while a higher class has work")
	f.IntVar(&o.order.Weight, "weight", 1, "share of the workers within the class, 1 to 1000")
	f.IntVar(&o.order.Canary, "canary", 2, "number of `items` to run before the others, as a check; 0 for none")
	f.StringVar((*string)(&o.precision), "precision", "", "arithmetic of the score network: "+cli.Words(parameter.Precisions())+" (default: that of each worker)")
	f.BoolVar(&o.watch, "watch", false, "show the progress until the campaign ends")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

// submittedPrior returns the digest of a prior that exists on this machine, else "".
func submittedPrior(path string) (sha string, err error) {
	if _, err := os.Stat(path); path == prior.Bundled || manifest.IsAddress(path) || errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	data, err := prior.Read(path)
	if err != nil {
		return "", fmt.Errorf("%w: %w", cli.ErrPrior, err)
	}
	return regular.SHA256(data), nil
}

// outputNote says where the results go, if the flag --output or else the file asks for another output.
func outputNote(spec *manifest.Spec, flag string, c api.Submitted) string {
	asked := cmp.Or(flag, spec.Output)
	if asked == c.Output || asked == manifest.Default().Output {
		return ""
	}
	return fmt.Sprintf("note: the results go to the folder %s of the cluster's store, not to %s; --output chooses the folder of a new campaign", c.Output, asked)
}

func printSubmitted(out io.Writer, c api.Submitted, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(c)
	}
	c = cli.Clean(c)
	note := ""
	if !c.Created {
		note = "  (submitted before, " + submittedState(c) + ")"
	}
	_, err := fmt.Fprintf(out, "%s%s\n", c.ID, note)
	return err
}

// submittedState describes a campaign that was submitted before, and the command that continues it.
func submittedState(c api.Submitted) string {
	text := "now " + string(c.Phase)
	if c.Phase.Ended() && !c.Recalled.IsZero() {
		text += ", back from the archive"
	}
	switch {
	case c.Phase == record.PhaseFinished:
		text += "; run failed or dead items again with: ddiff retry " + c.ID + " --failed --dead"
	case c.Wanted == record.WantRun:
		if c.Phase.Ended() || c.Phase == record.PhasePaused {
			text += ", resume requested"
		}
	case c.Phase.Ended(), c.Wanted == record.WantPause:
		text += "; continue it with: ddiff resume " + c.ID
	default:
		text += ", cancel requested"
	}
	return text
}
