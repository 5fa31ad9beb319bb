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

func newRetryCommand() *cobra.Command {
	var flags backendFlags
	var failed, dead, missing, list, notification, asJSON bool
	var where string
	cmd := &cobra.Command{
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
		RunE: func(cmd *cobra.Command, args []string) error {
			campaign, items := args[0], args[1:]
			selected := api.Retry{Items: items, Missing: missing}
			switch {
			case notification && (failed || dead || missing || where != "" || len(items) > 0):
				return cli.Usage(errors.New("retry: --notification retries no items; leave the other conditions away"))
			case list && notification:
				return listDeliveries(cmd, flags, campaign, asJSON)
			case list && (failed || dead || missing || where != ""):
				return cli.Usage(errors.New("retry: --list lists all dead items, or those of ITEM; leave the other conditions away"))
			case list:
				return listDead(cmd, flags, campaign, items, asJSON)
			case asJSON:
				return cli.Usage(errors.New("retry: --json is for --list"))
			case notification:
				return flags.with(cmd.Context(), func(b backend) error {
					c, err := b.Notify(cmd.Context(), campaign)
					if err != nil {
						return err
					}
					_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: notification of %s requested\n", c.ID, c.Phase)
					return err
				})
			case missing && (failed || dead || where != "" || len(items) > 0):
				return cli.Usage(errors.New("retry: --missing publishes all items without a result; leave the other conditions away"))
			case len(items) > 0 && (failed || where != ""):
				return cli.Usage(errors.New("retry: ITEM names dead items; leave --failed and --where away"))
			case len(items) > 0:
				dead = false // an ITEM is dead
			}
			if failed {
				selected.Outcomes = append(selected.Outcomes, manifest.OutcomeFailed)
			}
			if dead {
				selected.Outcomes = append(selected.Outcomes, manifest.OutcomeDead)
			}
			if len(selected.Outcomes) == 0 && len(items) == 0 && !missing {
				return cli.Usage(errors.New("retry: no items selected; give --failed, --dead or both, --missing, or ITEM"))
			}
			if where != "" {
				field, text, ok := strings.Cut(where, "=")
				if !ok || field != "reason" || text == "" {
					return cli.Usage(fmt.Errorf("--where: %q is not of the form reason=TEXT", where))
				}
				selected.Where = text
			}
			return flags.with(cmd.Context(), func(b backend) error {
				done, err := b.Retry(cmd.Context(), campaign, "", selected)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "published=%d\n", done.Published)
				return err
			})
		},
	}
	f := cmd.Flags()
	flags.add(cmd)
	f.BoolVar(&failed, "failed", false, "retry items whose input could not be restored")
	f.BoolVar(&dead, "dead", false, "retry items that used up their attempts")
	f.BoolVar(&missing, "missing", false, "publish the items without a result in storage")
	f.StringVar(&where, "where", "", "only items whose reason contains TEXT; give `reason=TEXT`")
	f.BoolVar(&notification, "notification", false, "retry no items: send the campaign's last notification again")
	f.BoolVar(&list, "list", false, "only list the dead items")
	f.BoolVar(&asJSON, "json", false, "with --list: print one JSON object for each item")
	return cmd
}

// listDead prints the dead letters of a campaign whose ids begin with one of items; without items, all. It names letters that cannot be
// read on standard error.
func listDead(cmd *cobra.Command, flags backendFlags, campaign string, items []string, asJSON bool) error {
	return flags.with(cmd.Context(), func(b backend) error {
		all, err := b.Dead(cmd.Context(), campaign)
		if err != nil {
			return err
		}
		printSkipped(cmd, all.Skipped)
		letters := all.Named(items)
		if len(items) > 0 && len(letters) == 0 {
			return cli.Usage(fmt.Errorf("campaign %s has no dead item %s; see: ddiff retry %s --list", campaign, strings.Join(items, ", "), campaign))
		}
		if !asJSON {
			return listLetters(cmd.OutOrStdout(), letters)
		}
		enc := json.NewEncoder(cmd.OutOrStdout())
		for _, d := range letters {
			if err := enc.Encode(d); err != nil {
				return err
			}
		}
		return nil
	})
}

// listDeliveries prints the notifications of a campaign.
func listDeliveries(cmd *cobra.Command, flags backendFlags, campaign string, asJSON bool) error {
	return flags.with(cmd.Context(), func(b backend) error {
		all, err := b.Deliveries(cmd.Context(), campaign)
		if err != nil {
			return err
		}
		if asJSON {
			enc := json.NewEncoder(cmd.OutOrStdout())
			for _, d := range all.Deliveries {
				if err := enc.Encode(d); err != nil {
					return err
				}
			}
			return nil
		}
		t := table.NewWriter(cmd.OutOrStdout(), table.Texts)
		fmt.Fprintln(t, "ID\tPHASE\tAT\tSTATUS\tERROR")
		for _, d := range all.Deliveries {
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\n", d.ID, d.Phase, d.At.Format(time.DateTime), d.Status, cli.Printable(d.Error))
		}
		return t.Flush()
	})
}

// listLetters writes a table of dead letters.
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
