package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ddiff/api"
	"ddiff/coordinator/report/table"
	"ddiff/internal/cli"
	"ddiff/manifest"
)

// retryOptions are the flags of retry.
type retryOptions struct {
	failed, dead, missing bool
	where                 string
	list, notification    bool
	json                  bool
}

func newRetryCommand() *cobra.Command {
	var o retryOptions
	var selected api.Retry
	cmd := verb(&cobra.Command{
		Use:   "retry CAMPAIGN [ITEM...]",
		Short: "Retry items that failed, are dead or have no result",
		Long: "Retry items of a campaign: those that failed, are dead or have no result, or the dead items whose ids begin with one of ITEM.\n" +
			"Dataset rows that could not be read are read again. The command waits for the coordinator's answer.\n" +
			"--missing compares the manifest with the results in storage, and replaces the queue by the items without a result.\n" +
			"The coordinator does this automatically if the queue has lost items.\n" +
			"--notification sends the last notification of the campaign again; with --list and --server, it lists those that were sent or given up.\n" +
			"--list retries nothing. It lists the dead items; with --json it prints each with its reason, log and work item.",
		Example: "  ddiff retry night-photos-5f0c11d2 --failed --where 'reason=truncated'\n" +
			"  ddiff retry night-photos-5f0c11d2 --list",
		Args: cobra.MinimumNArgs(1),
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			selected, err = o.selected(args[1:])
			return err
		},
	}, roleUser, func(cmd *cobra.Command, b backend, args []string) error {
		campaign := args[0]
		switch {
		case o.list && o.notification:
			all, err := b.Deliveries(cmd.Context(), campaign)
			if err != nil {
				return err
			}
			return showEach(cmd, o.json, all.Deliveries, listDeliveries)
		case o.list:
			return o.listDead(cmd, b, campaign, args[1:])
		case o.notification:
			c, err := b.Notify(cmd.Context(), campaign)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: notification of %s requested\n", c.ID, c.Phase)
			return err
		}
		done, err := b.Retry(cmd.Context(), campaign, "", selected)
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
	f.BoolVar(&o.notification, "notification", false, "retry no items: send the campaign's last notification again")
	f.BoolVar(&o.list, "list", false, "only list the dead items")
	f.BoolVar(&o.json, "json", false, "with --list: print one JSON object for each item")
	return cmd
}

func (o retryOptions) selected(items []string) (api.Retry, error) {
	selected := api.Retry{Items: items, Missing: o.missing}
	conditions := o.failed || o.dead || o.missing || o.where != ""
	problem := ""
	switch {
	case o.notification && (conditions || len(items) > 0):
		problem = "--notification retries no items; leave the other conditions away"
	case o.list && conditions:
		problem = "--list lists all dead items, or those of ITEM; leave the other conditions away"
	case o.json && !o.list:
		problem = "--json is for --list"
	case o.list || o.notification:
		return selected, nil
	case o.missing && (o.failed || o.dead || o.where != "" || len(items) > 0):
		problem = "--missing publishes all items without a result; leave the other conditions away"
	case len(items) > 0 && (o.failed || o.where != ""):
		problem = "ITEM names dead items; leave --failed and --where away"
	case !conditions && len(items) == 0 || o.where != "" && !o.failed && !o.dead:
		problem = "no items selected; give --failed, --dead or both, --missing, or ITEM"
	}
	if problem != "" {
		return selected, cli.Usage(errors.New("retry: " + problem))
	}
	if o.failed {
		selected.Outcomes = append(selected.Outcomes, manifest.OutcomeFailed)
	}
	if o.dead && len(items) == 0 { // an ITEM is dead
		selected.Outcomes = append(selected.Outcomes, manifest.OutcomeDead)
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

// listDead prints the dead letters of a campaign whose ids begin with one of items; without items, all. It names letters that cannot be
// read on standard error.
func (o retryOptions) listDead(cmd *cobra.Command, b backend, campaign string, items []string) error {
	all, err := b.Dead(cmd.Context(), campaign)
	if err != nil {
		return err
	}
	printSkipped(cmd, all.Skipped)
	letters := all.Named(items)
	if len(items) > 0 && len(letters) == 0 {
		return cli.Usage(fmt.Errorf("campaign %s has no dead item %s; see: ddiff retry %s --list", campaign, strings.Join(items, ", "), campaign))
	}
	return showEach(cmd, o.json, letters, listLetters)
}

func listDeliveries(out io.Writer, all []api.Delivery) error {
	t := table.NewWriter(out, table.Texts)
	fmt.Fprintln(t, "ID\tPHASE\tAT\tSTATUS\tERROR")
	for _, d := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\n", d.ID, d.Phase, d.At.Format(time.DateTime), d.Status, cli.Printable(d.Error))
	}
	return t.Flush()
}

func listLetters(out io.Writer, all []api.DeadLetter) error {
	t := table.NewWriter(out, table.Texts)
	fmt.Fprintln(t, "ITEM\tNAME\tTASK\tATTEMPTS\tWORKER\tBURIED\tREASON")
	for _, d := range all {
		var it manifest.Item
		_ = json.Unmarshal(d.Item, &it) // an unreadable item has no name
		fmt.Fprintf(t, "%.12s\t%s\t%s\t%d\t%s\t%s\t%s\n", d.ID, it.Name, it.Task, d.Attempts, d.Worker, d.Buried.Format(time.DateTime), cli.Printable(d.Reason))
	}
	return t.Flush()
}
