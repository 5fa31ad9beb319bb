package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ddiff/coordinator/archive"
	"ddiff/internal/cli"
	"ddiff/manifest"
	"ddiff/queue"
)

func newDeadCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead",
		Short: "List, show, retry or export items that used up their attempts",
	}
	cmd.AddCommand(newDeadListCommand(), newDeadShowCommand(), newDeadRetryCommand(), newDeadExportCommand())
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
			return cli.Usage(fmt.Errorf("campaign %s has no dead item %s; see: ddiff dead list %s", campaign, strings.Join(items, ", "), campaign))
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

func newDeadListCommand() *cobra.Command {
	var nats natsFlags
	cmd := &cobra.Command{
		Use:   "list CAMPAIGN",
		Short: "List a campaign's dead items",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return forDeadLetters(cmd, nats, args[0], nil, func(all []queue.DeadLetter) error {
				t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				fmt.Fprintln(t, "ITEM\tNAME\tTASK\tATTEMPTS\tWORKER\tBURIED\tREASON")
				for _, d := range all {
					var it manifest.Item
					_ = json.Unmarshal(d.Payload, &it) // an unreadable item has no name
					fmt.Fprintf(t, "%.12s\t%s\t%s\t%d\t%s\t%s\t%s\n", d.ID, it.Name, it.Task, d.Attempts, d.Worker, d.Buried.Format(time.DateTime), cli.Printable(d.Reason))
				}
				return t.Flush()
			})
		},
	}
	nats.add(cmd)
	return cmd
}

func newDeadShowCommand() *cobra.Command {
	var nats natsFlags
	cmd := &cobra.Command{
		Use:   "show CAMPAIGN ITEM",
		Short: "Show a dead item with its reason, log and work item",
		Long:  "Show a dead item with its reason, log and work item. ITEM is its id, or the beginning of its id.",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return forDeadLetters(cmd, nats, args[0], args[1:], func(all []queue.DeadLetter) error {
				return writeLetters(cmd.OutOrStdout(), all, "  ")
			})
		},
	}
	nats.add(cmd)
	return cmd
}

// writeLetters writes dead letters as JSON, with the work item as an object.
func writeLetters(out io.Writer, all []queue.DeadLetter, indent string) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", indent)
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
	for name, s := range cli.ItemSources(it) {
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

func newDeadRetryCommand() *cobra.Command {
	var nats natsFlags
	cmd := &cobra.Command{
		Use:   "retry CAMPAIGN [ITEM...]",
		Short: "Retry dead items",
		Long:  "Retry the dead items of a campaign: all, or those whose ids begin with one of ITEM.",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			command := manifest.Command{Verb: manifest.CommandRetry, Outcomes: []manifest.Outcome{manifest.OutcomeDead}}
			if len(args) > 1 {
				err := forDeadLetters(cmd, nats, args[0], args[1:], func(all []queue.DeadLetter) error {
					for _, d := range all {
						command.Items = append(command.Items, d.ID)
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			return order(cmd, &nats, args[0], command)
		},
	}
	nats.add(cmd)
	return cmd
}

func newDeadExportCommand() *cobra.Command {
	var nats natsFlags
	var out string
	cmd := &cobra.Command{
		Use:   "export CAMPAIGN",
		Short: "Write a campaign's dead items as JSON lines",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return forDeadLetters(cmd, nats, args[0], nil, func(all []queue.DeadLetter) (err error) {
				if out == "" {
					return writeLetters(cmd.OutOrStdout(), all, "")
				}
				f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
				if err != nil {
					return cli.Usage(fmt.Errorf("--out: %w", err))
				}
				defer func() { err = errors.Join(err, f.Close()) }()
				return writeLetters(f, all, "")
			})
		},
	}
	nats.add(cmd)
	cmd.Flags().StringVarP(&out, "out", "o", "", "a new `file` (default: standard output)")
	return cmd
}
