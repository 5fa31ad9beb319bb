package cluster

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// completionDeadline bounds how long a completion waits for the board: a person waits for the shell.
const completionDeadline = time.Second

// complete completes the CAMPAIGN argument of a command that has one.
func (f *backendFlags) complete(cmd *cobra.Command) {
	if words := strings.Fields(cmd.Use); len(words) > 1 && words[1] == "CAMPAIGN" {
		cmd.ValidArgsFunction = f.completeCampaigns
	}
}

// completeCampaigns completes the first argument of a command with the ids on the cluster's board. Without a board, or
// with a slow one, there is nothing to complete.
func (f *backendFlags) completeCampaigns(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionDeadline)
	defer cancel()
	found := make(chan []string, 1)
	go func() {
		var ids []string
		// Without a board there are no ids; the shell shows no errors.
		_ = f.with(ctx, func(b backend) error {
			all, err := b.Campaigns(ctx, false)
			for _, s := range all.Campaigns {
				ids = append(ids, s.Campaign.ID+"\t"+string(s.Campaign.Phase))
			}
			return err
		})
		found <- ids
	}()
	select {
	case ids := <-found:
		return ids, cobra.ShellCompDirectiveNoFileComp
	case <-ctx.Done(): // a connection attempt may outlive ctx
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}
