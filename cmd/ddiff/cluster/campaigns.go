package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ddiff/api"
	"ddiff/internal/cli"
	"ddiff/internal/record"
	"ddiff/internal/report/table"
	"ddiff/internal/retry"
)

func newListCommand() *cobra.Command {
	var asJSON, archived, mine bool
	cmd := verb(&cobra.Command{
		Use:   "list",
		Short: "List the campaigns of a cluster",
		Long: "List the campaigns of a cluster. Campaigns that ended some time ago are in the archive; --all lists them too.\n" +
			"Every other command finds an archived campaign by its id.",
		Args: cobra.NoArgs,
	}, func(cmd *cobra.Command, c *api.Client, _ []string) error {
		all, err := c.Campaigns(cmd.Context(), archived)
		if err != nil {
			return err
		}
		if mine {
			me, err := c.Me(cmd.Context())
			if err != nil {
				return err
			}
			all.Campaigns = of(me.Owner, all.Campaigns)
		}
		printSkipped(cmd, all.Skipped)
		return show(cmd, asJSON, all.Campaigns, writeList)
	})
	cmd.Flags().BoolVar(&mine, "mine", false, "list the campaigns of the owner of the access token only")
	cmd.Flags().BoolVarP(&archived, "all", "a", false, "also list archived campaigns")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printSkipped(cmd *cobra.Command, skipped []string) {
	for _, text := range skipped {
		fmt.Fprintln(cmd.ErrOrStderr(), "skipped:", cli.Printable(text))
	}
}

// of returns the campaigns of an owner.
func of(owner string, all []record.CampaignStatus) []record.CampaignStatus {
	return slices.DeleteFunc(slices.Clone(all), func(s record.CampaignStatus) bool { return s.Campaign.Owner != owner })
}

func writeList(out io.Writer, all []record.CampaignStatus) error {
	t, more := table.NewWriter(out), columnsOf(all)
	fmt.Fprintln(t, "CAMPAIGN\t"+more.heads()+"PHASE\tCLASS\tWEIGHT\tITEMS\tDONE\tFAILED\tDEAD\tDEVICE-S\tCOST\tLEFT\tSUBMITTED")
	for _, s := range all {
		n := s.Status.Counts
		fmt.Fprintf(t, "%s\t%s%s\t%s\t%d\t%d\t%d\t%d\t%d\t%.0f\t%s\t%s\t%s\n", s.Campaign.ID, more.cells(s.Campaign), s.Campaign.Phase, s.Campaign.Priority,
			s.Campaign.Weight, n.Items, n.Done, n.Failed, n.Dead, s.Status.Seconds, cost(s.Status), left(s.Status), s.Campaign.Submitted.Format(time.DateTime))
	}
	return t.Flush()
}

// column is one of a list that clusters without owners, pools or deadlines do not need.
type column struct {
	name string
	of   func(c *record.Campaign) string
}

type columns []column

// columnsOf returns the columns that have a value.
func columnsOf(all []record.CampaignStatus) columns {
	return slices.DeleteFunc(columns{
		{"OWNER", func(c *record.Campaign) string { return c.Owner }},
		{"POOL", func(c *record.Campaign) string { return c.Spec.Pool }},
		{"DEADLINE", func(c *record.Campaign) string { return c.Spec.Deadline }},
	}, func(c column) bool {
		return !slices.ContainsFunc(all, func(s record.CampaignStatus) bool { return c.of(s.Campaign) != "" })
	})
}

func (all columns) heads() (out string) {
	for _, c := range all {
		out += c.name + "\t"
	}
	return out
}

func (all columns) cells(of *record.Campaign) (out string) {
	for _, c := range all {
		out += cmp.Or(c.of(of), "-") + "\t"
	}
	return out
}

func cost(s record.Status) string {
	if s.Cost == 0 {
		return "-"
	}
	return strconv.FormatFloat(s.Cost, 'f', 2, 64)
}

func newStatusCommand() *cobra.Command {
	var asJSON, follow bool
	cmd := verb(&cobra.Command{
		Use:   "status [CAMPAIGN]",
		Short: "Show a campaign's status, or its progress until it ends",
		Long: "Show the status of a campaign, by default of the one that you submitted last. --watch shows its progress until it ends,\n" +
			"and then prints its counts in one line. The remaining time has a 95 % interval.",
		Args: cobra.MaximumNArgs(1),
	}, func(cmd *cobra.Command, c *api.Client, args []string) error {
		id, err := oneOrNewest(cmd.Context(), c, args)
		if err != nil {
			return err
		}
		if follow {
			return watch(cmd.Context(), c, id, asJSON, cmd.OutOrStdout(), cmd.ErrOrStderr())
		}
		s, err := c.Campaign(cmd.Context(), id)
		if err != nil {
			return err
		}
		return show(cmd, asJSON, s, writeStatus)
	})
	cmd.Flags().BoolVar(&follow, "watch", false, "show the progress until the campaign ends")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON; with --watch, one object for each change")
	return cmd
}

// oneOrNewest returns the campaign that the arguments name, or the one that was submitted last, by the owner of the token if it has submitted one.
func oneOrNewest(ctx context.Context, c *api.Client, args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	all, err := c.Campaigns(ctx, false)
	if err != nil {
		return "", err
	}
	me, err := c.Me(ctx)
	if err != nil {
		return "", err
	}
	if own := of(me.Owner, all.Campaigns); len(own) > 0 {
		all.Campaigns = own
	}
	if len(all.Campaigns) == 0 {
		return "", fmt.Errorf("%w: there is no campaign on the board; ddiff list --all has those of the archive", api.ErrNotFound)
	}
	newest := slices.MaxFunc(all.Campaigns, func(a, b record.CampaignStatus) int { return a.Campaign.Submitted.Compare(b.Campaign.Submitted) })
	return newest.Campaign.ID, nil
}

func writeStatus(out io.Writer, s record.CampaignStatus) error {
	c, st, n := s.Campaign, s.Status, s.Status.Counts
	b := table.NewWriter(out)
	fmt.Fprintf(b, "campaign\t%s\nphase\t%s", c.ID, c.Phase)
	if c.Reason != "" {
		fmt.Fprintf(b, ": %s", c.Reason)
	}
	if c.Phase == record.PhaseRejected {
		fmt.Fprintf(b, "\nremedy\tmend the cause, then: ddiff resume %s", c.ID)
	}
	if wanted := c.Wanted; wanted != record.WantRun && !c.Phase.Ended() && c.Phase != record.PhasePaused {
		fmt.Fprintf(b, " (%s requested)", strings.ReplaceAll(string(wanted), "_", " "))
	}
	for _, c := range columnsOf([]record.CampaignStatus{s}) {
		fmt.Fprintf(b, "\n%s\t%s", strings.ToLower(c.name), c.of(s.Campaign))
	}
	if st.Problem != "" {
		fmt.Fprintf(b, "\nproblem\t%s", st.Problem)
	}
	if st.Warning != "" {
		fmt.Fprintf(b, "\nwarning\t%s", st.Warning)
	}
	more := ""
	if !st.Complete {
		more = " so far"
	}
	fmt.Fprintf(b, "\nitems\t%d%s\n", n.Items, more)
	for _, line := range []struct {
		name  string
		count int
	}{{"pending", n.Pending}, {"running", n.Running}, {"done", n.Done}, {"failed", n.Failed}, {"dead", n.Dead}, {"cancelled", n.Cancelled}} {
		fmt.Fprintf(b, "%s\t%d\n", line.name, line.count)
	}
	if !c.Phase.Ended() {
		fmt.Fprintf(b, "workers\t%d\nrate\t%.3g items/s\nleft\t%s\n", st.Workers, st.Rate, left(st))
	}
	fmt.Fprintf(b, "device-s\t%.0f\n", st.Seconds)
	if st.Cost > 0 {
		fmt.Fprintf(b, "cost\t%s\n", cost(st))
	}
	for _, u := range st.Uses {
		if len(st.Uses) > 1 {
			fmt.Fprintf(b, "  %s %s\t%.0f device-s, cost %.2f\n", u.Month, u.Pool, u.Seconds, u.Cost)
		}
	}
	fmt.Fprintf(b, "output\t%s\n", c.Output)
	return b.Flush()
}

// left formats the expected remaining time with its interval.
func left(s record.Status) string {
	if s.Phase.Ended() || s.Complete && s.Counts.Pending+s.Counts.Running == 0 {
		return "-"
	}
	if s.Left == 0 {
		return "?"
	}
	span := func(seconds float64) string {
		return (time.Duration(seconds) * time.Second).Round(time.Second).String()
	}
	return fmt.Sprintf("%s (%s to %s)", span(s.Left), span(s.LeftLow), span(s.LeftHigh))
}

// watchPatience is how long watch goes on without an answer.
const watchPatience = 2 * time.Minute

// watch shows the progress of a campaign until it ends.
func watch(ctx context.Context, c *api.Client, id string, asJSON bool, stdout, stderr io.Writer) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	bar, show := cli.TerminalWidth(stderr) > 0 && !asJSON, cli.StatusLine(stderr)
	var last record.Status
	var printed, answered time.Time
	for {
		s, err := c.Campaign(ctx, id)
		switch {
		case err == nil:
			answered = time.Now()
		case !errors.Is(err, api.ErrUnavailable) || time.Since(answered) > watchPatience:
			return err
		default: // another coordinator may answer soon
			if err := retry.Sleep(ctx, time.Second); err != nil {
				return err
			}
			continue
		}
		if !asJSON {
			s = cli.Clean(s)
		}
		st := s.Status
		changed := st.Counts != last.Counts || st.Phase != last.Phase
		if st.Warning != "" && st.Warning != last.Warning && !asJSON {
			show("")
			fmt.Fprintln(stderr, "warning:", st.Warning)
		}
		switch {
		case asJSON && changed:
			if err := json.NewEncoder(stdout).Encode(st); err != nil {
				return err
			}
		case bar:
			show(watchLine(st))
		case !asJSON && (st.Phase != last.Phase || time.Since(printed) > cli.LineEvery):
			fmt.Fprintln(stderr, watchLine(st))
			printed = time.Now()
		}
		last = st
		if hasEnded(s) {
			if bar {
				fmt.Fprintln(stderr)
			}
			return endOf(s, asJSON, stdout)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// hasEnded reports whether a campaign has ended with its final counts: the coordinator writes the status after the phase.
// A campaign that was resumed after its end has not ended, although no coordinator may have opened it yet.
func hasEnded(s record.CampaignStatus) bool {
	c := s.Campaign
	resumed := c.Phase != record.PhaseFinished && c.Wanted == record.WantRun
	return c.Phase.Ended() && !resumed && s.Status.Phase == c.Phase
}

func watchLine(s record.Status) string {
	n := s.Counts
	line := fmt.Sprintf("%s  %d/%d items  running %d  failed %d  dead %d  workers %d  %.3g items/s  left %s",
		s.Phase, n.Done+n.Failed+n.Dead, n.Items, n.Running, n.Failed, n.Dead, s.Workers, s.Rate, left(s))
	for _, text := range []string{s.Problem, s.Reason} {
		if text != "" {
			line += "  " + text
		}
	}
	return line
}

// endOf prints the counts of a campaign that has ended. A correct cluster loses no items.
func endOf(s record.CampaignStatus, asJSON bool, out io.Writer) error {
	n, phase := s.Status.Counts, s.Campaign.Phase
	if !asJSON {
		cancelled := ""
		if n.Cancelled > 0 {
			cancelled = fmt.Sprintf(" cancelled=%d", n.Cancelled)
		}
		lost := n.Items - n.Done - n.Failed - n.Dead - n.Cancelled
		fmt.Fprintf(out, "done=%d failed=%d dead=%d lost=%d%s\n", n.Done, n.Failed, n.Dead, lost, cancelled)
	}
	switch {
	case phase == record.PhaseRejected:
		return fmt.Errorf("%w: %s: %s; mend the cause, then: ddiff resume %s", cli.ErrRejected, s.Campaign.ID, s.Campaign.Reason, s.Campaign.ID)
	case phase == record.PhaseCancelled:
		return fmt.Errorf("%w: %s", cli.ErrCancelled, s.Campaign.ID)
	case n.Failed+n.Dead > 0:
		return fmt.Errorf("%w: %d failed, %d dead; the reasons are in %s/failures/%s of the store", cli.ErrIncomplete, n.Failed, n.Dead,
			s.Campaign.Output, s.Campaign.ID)
	}
	return nil
}
