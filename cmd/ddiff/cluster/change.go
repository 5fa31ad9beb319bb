package cluster

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"ddiff/api"
	"ddiff/internal/cli"
	"ddiff/internal/record"
	"ddiff/manifest"
)

// none is the value of a flag that removes a setting.
const none = "none"

// newChangeCommand changes settings of a campaign.
func newChangeCommand() *cobra.Command {
	var change api.Change
	var priority, pool, deadline, budget string
	cmd := &cobra.Command{
		Use: "change CAMPAIGN", Short: "Change the share, pool, deadline or budget of a campaign", Args: cobra.ExactArgs(1),
		Long: "Change the priority, weight, pool, deadline or budget of a campaign that has not\n" +
			"finished. Its results stay the same.\n" +
			"A campaign that waits at a limit continues with ddiff resume.",
	}
	f := cmd.Flags()
	f.StringVar(&priority, "priority", "", "priority `class`: high, normal or low")
	f.IntVar(&change.Weight, "weight", 0, "share of the workers within the class, 1 to 1000")
	f.StringVar(&pool, "pool", "", "`name` of the pool of workers, or none: any pool")
	f.StringVar(&deadline, "deadline", "", "`time` by which it should end, as 2026-12-01T08:00:00Z, or none")
	f.StringVar(&budget, "budget", "", "`limits` of the budget that change, as in seconds=7200,cost=10; 0 removes one")
	text := func(name, value string) *string {
		if !f.Changed(name) {
			return nil
		}
		if value == none {
			value = ""
		}
		return &value
	}
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if f.NFlag() == 0 {
			return cli.Usage(errors.New("there is nothing to change; give --priority, --weight, --pool, --deadline or --budget"))
		}
		if f.Changed("weight") && change.Weight == 0 {
			return cli.Usage(fmt.Errorf("--weight: 0 is outside 1..%d", record.MaxWeight))
		}
		change.Priority, change.Pool, change.Deadline = record.Priority(priority), text("pool", pool), text("deadline", deadline)
		if budget != "" {
			return usageOf("--budget", new(manifest.Budget).Set(budget))
		}
		return nil
	}
	return verb(cmd, func(cmd *cobra.Command, c *api.Client, args []string) error {
		if budget != "" {
			s, err := c.Campaign(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			limits := s.Campaign.Spec.Budget
			if err := usageOf("--budget", limits.Set(budget)); err != nil {
				return err
			}
			change.Budget = &limits
		}
		now, err := c.Change(cmd.Context(), args[0], change)
		if err != nil {
			return err
		}
		if now.Pool == nil || now.Deadline == nil || now.Budget == nil {
			return errors.New("the answer lacks settings; use one version of ddiff everywhere")
		}
		now = cli.Clean(now)
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: priority %s, weight %d, pool %s, deadline %s, budget %s\n", args[0], now.Priority, now.Weight,
			cmp.Or(*now.Pool, none), cmp.Or(*now.Deadline, none), cmp.Or(now.Budget.From(manifest.Budget{}), none))
		return err
	})
}
