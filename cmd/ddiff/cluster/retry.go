package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ddiff/api"
	"ddiff/internal/cli"
	"ddiff/restore/item"
)

// retryOptions are the flags of retry.
type retryOptions struct {
	failed, dead, missing bool
	where                 string
}

func newRetryCommand() *cobra.Command {
	var o retryOptions
	var selected api.Retry
	cmd := verb(&cobra.Command{
		Use:   "retry CAMPAIGN [ITEM...]",
		Short: "Retry items that failed, are dead or have no result",
		Long: "Retry items of a campaign: those that failed, are dead or have no result, or the failed and dead items whose ids begin with one of ITEM.\n" +
			"Dataset rows that could not be read are read again; a file that was changed needs another campaign. The command waits for the coordinator's answer.\n" +
			"--missing compares the manifest with the results in storage, and replaces the queue by the items without a result.\n" +
			"The coordinator does this automatically if the queue has lost items.",
		Example: "  ddiff retry night-photos-5f0c11d2 --failed --where 'reason=no such file'",
		Args:    cobra.MinimumNArgs(1),
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			selected, err = o.selected(args[1:])
			return err
		},
	}, func(cmd *cobra.Command, c *api.Client, args []string) error {
		done, err := c.Retry(cmd.Context(), args[0], "", selected)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "published=%d\n", done.Published)
		return err
	})
	f := cmd.Flags()
	f.BoolVar(&o.failed, "failed", false, "retry items whose input could not be restored")
	f.BoolVar(&o.dead, "dead", false, "retry items that used up their attempts")
	f.BoolVar(&o.missing, "missing", false, "publish the items without a result in storage")
	f.StringVar(&o.where, "where", "", "only items whose reason contains TEXT; give `reason=TEXT`")
	return cmd
}

func (o retryOptions) selected(items []string) (api.Retry, error) {
	selected := api.Retry{Items: items, Missing: o.missing}
	conditions := o.failed || o.dead || o.missing || o.where != ""
	problem := ""
	switch {
	case o.missing && (o.failed || o.dead || o.where != ""):
		problem = "--missing publishes all items without a result; leave the other conditions away"
	case len(items) > 0 && conditions:
		problem = "ITEM names failed or dead items; leave the other conditions away"
	case slices.Contains(items, ""): // as of an unset variable: it begins all ids
		problem = "ITEM is empty; give an id or the beginning of an id"
	case !conditions && len(items) == 0 || o.where != "" && !o.failed && !o.dead:
		problem = "no items selected; give --failed, --dead or both, --missing, or ITEM"
	}
	if problem != "" {
		return selected, cli.Usage(errors.New("retry: " + problem))
	}
	if o.failed {
		selected.Outcomes = append(selected.Outcomes, item.OutcomeFailed)
	}
	if o.dead {
		selected.Outcomes = append(selected.Outcomes, item.OutcomeDead)
	}
	if o.where != "" {
		text, ok := strings.CutPrefix(o.where, "reason=")
		if !ok || text == "" {
			return selected, cli.Usage(fmt.Errorf("--where: %q is not of the form reason=TEXT", o.where))
		}
		selected.Where = text
	}
	return selected, nil
}
