package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ddiff/coordinator/archive"
	"ddiff/coordinator/report/table"
	"ddiff/internal/cli"
	"ddiff/manifest"
	"ddiff/queue"
)

func newRetryCommand() *cobra.Command {
	var nats natsFlags
	var failed, dead, missing, list, asJSON bool
	var where string
	cmd := &cobra.Command{
		Use:   "retry CAMPAIGN [ITEM...]",
		Short: "Retry items that failed, are dead or have no result",
		Long: "Retry items of a campaign: those that failed, are dead or have no result, or the dead items whose ids begin with one of ITEM.\n" +
			"Dataset rows that could not be read are read again. The command waits for the coordinator's answer.\n" +
			"--missing compares the manifest with the results in storage, and replaces the queue by the items without a result.\n" +
			"The coordinator does this automatically if the queue has lost items.\n" +
			"--list retries nothing. It lists the dead items; with --json it prints each with its reason, log and work item.",
		Example: "  ddiff retry night-photos-5f0c11d2 --failed --where 'reason=truncated'\n" +
			"  ddiff retry night-photos-5f0c11d2 --list",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			campaign, items := args[0], args[1:]
			command := manifest.Command{Verb: manifest.CommandRetry}
			switch {
			case list && (failed || dead || missing || where != ""):
				return cli.Usage(errors.New("retry: --list lists all dead items, or those of ITEM; leave the other conditions away"))
			case list:
				return forDeadLetters(cmd, nats, campaign, items, func(all []queue.DeadLetter) error {
					if asJSON {
						return writeLetters(cmd.OutOrStdout(), all)
					}
					return listLetters(cmd.OutOrStdout(), all)
				})
			case asJSON:
				return cli.Usage(errors.New("retry: --json is for --list"))
			case missing && (failed || dead || where != "" || len(items) > 0):
				return cli.Usage(errors.New("retry: --missing publishes all items without a result; leave the other conditions away"))
			case missing:
				return order(cmd, &nats, campaign, manifest.Command{Verb: manifest.CommandReconcile})
			case len(items) > 0 && (failed || where != ""):
				return cli.Usage(errors.New("retry: ITEM names dead items; leave --failed and --where away"))
			case len(items) > 0:
				dead = true
				err := forDeadLetters(cmd, nats, campaign, items, func(all []queue.DeadLetter) error {
					for _, d := range all {
						command.Items = append(command.Items, d.ID)
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			if failed {
				command.Outcomes = append(command.Outcomes, manifest.OutcomeFailed)
			}
			if dead {
				command.Outcomes = append(command.Outcomes, manifest.OutcomeDead)
			}
			if len(command.Outcomes) == 0 {
				return cli.Usage(errors.New("retry: no items selected; give --failed, --dead or both, --missing, or ITEM"))
			}
			if where != "" {
				field, text, ok := strings.Cut(where, "=")
				if !ok || field != "reason" || text == "" {
					return cli.Usage(fmt.Errorf("--where: %q is not of the form reason=TEXT", where))
				}
				command.Where = text
			}
			return order(cmd, &nats, campaign, command)
		},
	}
	f := cmd.Flags()
	nats.add(cmd)
	f.BoolVar(&failed, "failed", false, "retry items whose input could not be restored")
	f.BoolVar(&dead, "dead", false, "retry items that used up their attempts")
	f.BoolVar(&missing, "missing", false, "publish the items without a result in storage")
	f.StringVar(&where, "where", "", "only items whose reason contains TEXT; give `reason=TEXT`")
	f.BoolVar(&list, "list", false, "only list the dead items")
	f.BoolVar(&asJSON, "json", false, "with --list: print one JSON object for each item")
	return cmd
}

// forDeadLetters calls use with the dead letters of a campaign whose ids begin with one of items; without items, with all.
// It reports letters that cannot be read on standard error.
func forDeadLetters(cmd *cobra.Command, nats natsFlags, campaign string, items []string, use func(all []queue.DeadLetter) error) error {
	ctx := cmd.Context()
	return nats.withQueue(ctx, campaign, func(b *queue.Board, q *queue.Queue) error {
		if err := archive.Recall(ctx, b, campaign); err != nil {
			return unknownCampaign(campaign, err)
		}
		var all []queue.DeadLetter
		seen := map[string]bool{}
		for letter, err := range q.DeadLetters(ctx) {
			if errors.Is(err, queue.ErrDamaged) {
				fmt.Fprintln(cmd.ErrOrStderr(), "skipped:", cli.OneLine(err))
				continue
			}
			if err != nil {
				return err
			}
			key := fmt.Sprint(letter.ID, letter.Round, letter.Buried.UnixNano())
			if !seen[key] && (len(items) == 0 || named(letter.ID, items)) {
				seen[key] = true // a coordinator that crashed may have restored the letter twice
				all = append(all, letter)
			}
		}
		if len(items) > 0 && len(all) == 0 {
			return cli.Usage(fmt.Errorf("campaign %s has no dead item %s; see: ddiff retry %s --list", campaign, strings.Join(items, ", "), campaign))
		}
		return use(all)
	})
}

// named reports whether an id begins with one of the texts.
func named(id string, items []string) bool {
	for _, prefix := range items {
		if strings.HasPrefix(id, prefix) {
			return true
		}
	}
	return false
}

// listLetters writes a table of dead letters.
func listLetters(out io.Writer, all []queue.DeadLetter) error {
	t := table.NewWriter(out, table.Texts)
	fmt.Fprintln(t, "ITEM\tNAME\tTASK\tATTEMPTS\tWORKER\tBURIED\tREASON")
	for _, d := range all {
		var it manifest.Item
		_ = json.Unmarshal(d.Payload, &it) // an unreadable item has no name
		fmt.Fprintf(t, "%.12s\t%s\t%s\t%d\t%s\t%s\t%s\n", d.ID, it.Name, it.Task, d.Attempts, d.Worker, d.Buried.Format(time.DateTime), cli.Printable(d.Reason))
	}
	return t.Flush()
}

// writeLetters writes dead letters as JSON lines, with the work item as an object.
func writeLetters(out io.Writer, all []queue.DeadLetter) error {
	enc := json.NewEncoder(out)
	for _, d := range all {
		entry := struct {
			queue.Dead
			Class  string          `json:"class"`
			Buried time.Time       `json:"buried"`
			Item   json.RawMessage `json:"item,omitempty"`
		}{d.Dead, d.Class, d.Buried, nil}
		if json.Valid(d.Payload) {
			entry.Item = publicItem(d.Payload)
		}
		if err := enc.Encode(entry); err != nil {
			return err
		}
	}
	return nil
}

// publicItem removes secrets from the addresses of an item. It preserves fields that this version does not know.
func publicItem(payload []byte) json.RawMessage {
	var it manifest.Item
	var fields map[string]json.RawMessage
	if json.Unmarshal(payload, &it) != nil || json.Unmarshal(payload, &fields) != nil {
		return payload
	}
	changed := false
	for name, s := range it.Sources() {
		if s.Public() == s.Path {
			continue
		}
		data, err := json.Marshal(manifest.Source{Path: s.Public(), SHA256: s.SHA256})
		if err != nil {
			return nil
		}
		fields[name], changed = data, true
	}
	if !changed {
		return payload
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	return data
}
