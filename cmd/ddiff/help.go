package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ddiff/internal/cli"
)

// flagGroup is a heading in help texts with the names of the flags below it.
type flagGroup struct {
	title string
	names []string
	// with limits the group to commands that have a flag of this name.
	with string
}

// flagGroups are the headings after the command's own flags, in their order. A flag that no group names is one of the
// command's own.
func flagGroups() []flagGroup {
	return []flagGroup{
		{"Problem and solver flags", []string{"param", "sigma", "photons", "seed", "runs", "select", "solver", "fit", "tile", "overlap"}, "param"},
		{"Device flags", []string{
			"device", "batch", "threads", "precision", "form", "chunk", "provider-option", "onnxruntime", "prior-memory",
		}, ""},
		{"Dataset access flags", []string{
			"allow-host", "allow-network", "allow-endpoint", "allow-http", "source-ca", "source-cache",
		}, ""},
		{"NATS flags", []string{"nats", "creds", "nkey", "nats-ca", "nats-cert", "nats-key", "nats-wait"}, ""},
		{"Log and trace flags", []string{"log-level", "log-format", "trace-file"}, ""},
	}
}

// groupFlags divides the flags of a command by group: titles[i] is the heading of sets[i].
func groupFlags(flags *pflag.FlagSet) (titles []string, sets []*pflag.FlagSet) {
	newSet := func(title string) *pflag.FlagSet {
		set := pflag.NewFlagSet(title, pflag.ContinueOnError)
		set.SortFlags = false
		titles, sets = append(titles, title), append(sets, set)
		return set
	}
	own := newSet("Flags")
	groups := map[string]*pflag.FlagSet{}
	for _, g := range flagGroups() {
		set := newSet(g.title)
		if g.with != "" && flags.Lookup(g.with) == nil {
			continue
		}
		for _, name := range g.names {
			groups[name] = set
		}
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if set := groups[f.Name]; set != nil {
			set.AddFlag(f)
		} else {
			own.AddFlag(f)
		}
	})
	return titles, sets
}

// writeUsage writes the usage of a command: its forms, examples, verbs and flags by group. Width is that of the
// terminal, 0 without one.
func writeUsage(cmd *cobra.Command, width int, s cli.Style) error {
	var b strings.Builder
	heading := func(text string) { fmt.Fprintf(&b, "\n%s\n", s.Bold(text)) }
	b.WriteString(s.Bold("Usage:") + "\n")
	if cmd.Runnable() && !cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s [command]\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		heading("Examples:")
		b.WriteString(cmd.Example + "\n")
	}
	writeVerbs(&b, cmd, heading)
	titles, sets := groupFlags(cmd.Flags())
	for i, set := range sets {
		if set.HasAvailableFlags() {
			heading(titles[i] + ":")
			b.WriteString(set.FlagUsagesWrapped(width))
		}
	}
	if cmd.HasParent() {
		b.WriteString("\nExit codes: ddiff help exit-codes\n")
	} else {
		b.WriteString("\nHelp on a command: ddiff COMMAND --help. Exit codes: ddiff help exit-codes.\n" +
			"Shell completion: ddiff completion --help. Manual pages: ddiff man --help.\n")
	}
	_, err := fmt.Fprint(cmd.OutOrStderr(), b.String())
	return err
}

// writeVerbs lists the sub-commands of a command, by group where it has groups.
func writeVerbs(b *strings.Builder, cmd *cobra.Command, heading func(text string)) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	list := func(group string) {
		for _, c := range cmd.Commands() {
			if c.GroupID == group && (c.IsAvailableCommand() || c.Name() == "help") {
				fmt.Fprintf(b, "  %-*s  %s\n", cmd.NamePadding(), c.Name(), c.Short)
			}
		}
	}
	if len(cmd.Groups()) == 0 {
		heading("Commands:")
		list("")
	}
	for _, g := range cmd.Groups() {
		heading(g.Title)
		list(g.ID)
	}
}
