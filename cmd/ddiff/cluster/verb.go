package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ddiff/api"
	"ddiff/internal/cli"
	"ddiff/internal/cli/server"
)

// verb adds the flags that name a server to a command, which calls run with its client, and completes the CAMPAIGN argument of a command that has
// one.
func verb(cmd *cobra.Command, run func(cmd *cobra.Command, c *api.Client, args []string) error) *cobra.Command {
	var at server.Flags
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := at.Client()
		if err != nil {
			return err
		}
		return at.Explain(run(cmd, c, args))
	}
	at.Add(cmd.Flags(), "$"+server.Env+", default "+server.Default)
	if words := strings.Fields(cmd.Use); len(words) > 1 && strings.Trim(words[1], "[]") == "CAMPAIGN" {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return completeCampaigns(cmd.Context(), at, args), cobra.ShellCompDirectiveNoFileComp
		}
	}
	return cmd
}

// show prints a record of the cluster as JSON, or as text.
func show[T any](cmd *cobra.Command, asJSON bool, record T, text func(out io.Writer, record T) error) error {
	if asJSON {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(record)
	}
	var page bytes.Buffer // a table writes each of its cells
	if err := text(&page, cli.Clean(record)); err != nil {
		return err
	}
	_, err := page.WriteTo(cmd.OutOrStdout())
	return err
}

// completionDeadline bounds how long a completion waits for the server: a person waits for the shell.
const completionDeadline = time.Second

// completeCampaigns completes the first argument of a command with the ids of campaigns. Without a server, or with a slow one, there is nothing
// to complete.
func completeCampaigns(ctx context.Context, at server.Flags, args []string) (ids []string) {
	if len(args) > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionDeadline)
	defer cancel()
	c, err := at.Client()
	if err != nil { // the shell shows no errors
		return nil
	}
	all, _ := c.Campaigns(ctx, false)
	for _, s := range all.Campaigns {
		ids = append(ids, cli.Printable(s.Campaign.ID)+"\t"+cli.Printable(string(s.Campaign.Phase)))
	}
	return ids
}
