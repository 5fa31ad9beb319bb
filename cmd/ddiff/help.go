package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ddiff/internal/cli"
	"ddiff/internal/report/table"
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
			"device", "batch", "threads", "precision", "onnxruntime", "prior-memory",
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

// helpColumns is the largest number of columns of a line of help.
const helpColumns = 80

// reflow joins the lines of each paragraph and wraps it. Indented lines are not joined.
func reflow(text string) string {
	var lines []string
	joins := false
	for line := range strings.SplitSeq(text, "\n") {
		plain := line != "" && line[0] != ' '
		if plain && joins {
			lines[len(lines)-1] += " " + line
		} else {
			lines = append(lines, line)
		}
		joins = plain
	}
	for i, line := range lines {
		lines[i] = wrap(line)
	}
	return strings.Join(lines, "\n")
}

// wrap breaks a line at spaces. The parts have its indentation.
func wrap(line string) string {
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
	out, columns := indent, len(indent)
	for i, word := range strings.Split(line[len(indent):], " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case columns+1+n > helpColumns:
			out, columns = out+"\n"+indent, len(indent)
		default:
			out, columns = out+" ", columns+1
		}
		out, columns = out+word, columns+n
	}
	return out
}

// writeUsage writes the usage of a command: its forms, examples, verbs and flags by group.
func writeUsage(cmd *cobra.Command, s cli.Style) error {
	b := table.NewWriter(cmd.OutOrStderr())
	heading := func(text string) { fmt.Fprintf(b, "\n%s\n", s.Bold(text)) }
	fmt.Fprintln(b, s.Bold("Usage:"))
	if cmd.Runnable() && !cmd.HasAvailableSubCommands() {
		fmt.Fprintf(b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(b, "  %s [command]\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		heading("Examples:")
		fmt.Fprintln(b, cmd.Example)
	}
	writeVerbs(b, cmd, heading)
	titles, sets := groupFlags(cmd.Flags())
	for i, set := range sets {
		if set.HasAvailableFlags() {
			heading(titles[i] + ":")
			// pflag shows that a switch may have a value, which nobody needs.
			const value = "[=true|false]"
			fmt.Fprint(b, strings.ReplaceAll(set.FlagUsagesWrapped(helpColumns), value, strings.Repeat(" ", len(value))))
		}
	}
	if cmd.HasParent() {
		fmt.Fprint(b, "\nExit codes: ddiff help exit-codes\n")
	} else {
		fmt.Fprint(b, "\nHelp on a command: ddiff COMMAND --help. Exit codes: ddiff help exit-codes.\n"+
			"Shell completion: ddiff completion --help. Manual pages: ddiff man --help.\n")
	}
	return b.Flush()
}

// writeVerbs lists the sub-commands of a command, by group where it has groups.
func writeVerbs(b io.Writer, cmd *cobra.Command, heading func(text string)) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	list := func(group string) {
		for _, c := range cmd.Commands() {
			if c.GroupID == group && (c.IsAvailableCommand() || c.Name() == "help") {
				fmt.Fprintf(b, "  %s\t%s\n", c.Name(), c.Short)
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
