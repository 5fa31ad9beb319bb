package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ddiff/cmd/ddiff/bench"
	"ddiff/cmd/ddiff/cluster"
	"ddiff/cmd/ddiff/lookup"
	"ddiff/cmd/ddiff/machine"
	"ddiff/cmd/ddiff/results"
	"ddiff/cmd/ddiff/run"
	"ddiff/cmd/ddiff/tune"
	"ddiff/internal/cli"
	"ddiff/manifest"
	"ddiff/telemetry"
)

// execute runs one command line and returns the exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRootCommand(stdout, manifest.Catalogue{}, args...)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	var cmd *cobra.Command
	var err error
	if len(args) > 0 && strings.Trim(args[0], "-") == "" { // cobra would print the help
		cmd, err = root, cli.Usage(fmt.Errorf("unknown command %q", args[0])) // message adds a remedy
	} else {
		cmd, err = root.ExecuteContextC(ctx)
	}
	if out, ok := stdout.(*cli.Output); ok && err == nil && out.Err() != nil {
		err = fmt.Errorf("output is lost: %w", out.Err())
	}
	switch {
	case err != nil && logsJSON(cmd):
		slog.New(slog.NewJSONHandler(stderr, nil)).Error("ended", "reason", cli.Message(err), "exit_code", cli.ExitCode(err))
	case err != nil:
		fmt.Fprintln(stderr, cli.StyleOf(stderr).Red("ddiff:"), cli.Message(err))
	}
	return cli.ExitCode(err)
}

// nearFlag names the flag of a command that an unknown one probably means.
func nearFlag(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return ""
	}
	const short = 4 // names with fewer letters may have one wrong
	name := unknown.GetSpecifiedName()
	flags := &cobra.Command{SuggestionsMinimumDistance: 2}
	if len(name) < short {
		flags.SuggestionsMinimumDistance = 1
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	near := flags.SuggestionsFor(name)
	if len(name) < 2 || len(near) == 0 {
		return ""
	}
	return fmt.Sprintf("did you mean --%s? ", near[0])
}

// logsJSON reports whether a command is a process of a cluster with --log-format json: then every line on standard error is
// JSON.
func logsJSON(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup("log-format")
	return f != nil && f.Value.String() == string(telemetry.LogJSON) && (cmd.Name() == "worker" || cmd.Name() == "coordinator")
}

// newRootCommand builds the command tree for the methods and operators of a catalogue: with arguments that begin with the name of a command of package run, only
// that command. Help has colours where stdout is a terminal.
func newRootCommand(stdout io.Writer, c manifest.Catalogue, args ...string) *cobra.Command {
	root := &cobra.Command{
		Use:   "ddiff",
		Short: "Restore whole datasets of images with Dual Ascent Diffusion (DDiff)",
		Long: "Restore your own pictures:\n\n" +
			"  ddiff restore photo.jpg              # looks for noise and strong compression\n" +
			"  ddiff restore noisy.png --task denoise --sigma auto\n" +
			"  ddiff restore soft.jpg --task gaussian_deblur --kernel disk:auto --sigma auto\n" +
			"  ddiff restore small.jpg --task super_resolution --sigma auto\n" +
			"  ddiff restore scratched.png --task inpaint --mask scratches.png --sigma 0.01\n\n" +
			"The results are photo.restored.jpg and so on; see: ddiff restore --help. ddiff solves\n" +
			"inverse problems y = A(x) + noise with a pretrained diffusion prior, also over whole\n" +
			"datasets, for experiments on this machine and on clusters.",
		Example: "  ddiff run photo.png --task super_resolution       # degrade, restore, compare\n" +
			"  ddiff run campaign.yaml\n" +
			"  ddiff submit campaign.yaml --server https://host:8620 --watch",
		Version:       cli.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cobra.EnableCommandSorting = false // the most used commands come first
	root.SetVersionTemplate("ddiff {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return cli.Usage(fmt.Errorf("%w; %ssee: %s --help", err, nearFlag(cmd, err), cmd.CommandPath()))
	})
	root.SetUsageFunc(func(cmd *cobra.Command) error { return writeUsage(cmd, cli.StyleOf(stdout)) })
	if len(args) > 0 {
		root.AddCommand(run.Commands(c, args[0])...)
	}
	if root.HasSubCommands() {
		prepare(root)
		return root
	}
	addAll(root, c)
	prepare(root)
	completeFlags(root, c)
	return root
}

// addAll adds all commands under the headings of the help, and the topics.
func addAll(root *cobra.Command, c manifest.Catalogue) {
	for _, g := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"restore", "Restore images:", slices.Concat(run.Commands(c), []*cobra.Command{tune.NewCommand(c)}, results.Commands(c))},
		{"cluster", "Run campaigns on a cluster:", cluster.Commands(c)},
		{"models", "Look up tasks, methods and models:", lookup.Commands(c)},
		{"machine", "Set up and measure this machine:", append(machine.Commands(), bench.NewCommand(), cluster.NewGCCommand(), newVersionCommand(), newManCommand())},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, cmd := range g.commands {
			cmd.GroupID = g.id
			root.AddCommand(cmd)
		}
	}
	root.SetCompletionCommandGroupID("machine")
	root.SetHelpCommandGroupID("machine")
	root.AddCommand(cli.NewExitCodesTopic())
	describeDefaults(root)
}

// describeDefaults creates the commands help and completion of cobra with texts of this program. Help on an unknown
// command is a usage error.
func describeDefaults(root *cobra.Command) {
	root.Flags().BoolP("version", "v", false, "print the version")
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			cmd.Short, cmd.Hidden = "Print the completion script of a shell", true // the last lines of the help name it
			cmd.Long = "Print the completion script of a shell. ddiff completion SHELL --help describes its installation."
		case "help":
			cmd.Short, cmd.Long = "Show the help of a command", "Show the help of a command or a topic."
			cmd.Args = func(_ *cobra.Command, args []string) error {
				if found, rest, err := root.Find(args); err != nil || len(rest) > 0 || found == nil {
					return fmt.Errorf("unknown command or topic %q", strings.Join(args, " "))
				}
				return nil
			}
		}
	}
}

// prepare walks the command tree. It turns wrong arguments into usage errors, makes a command that only groups others
// refuse unknown verbs, and wraps long texts.
func prepare(cmd *cobra.Command) {
	cmd.Long = reflow(cmd.Long)
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolP("help", "h", false, "print this help")
	if cmd.HasSubCommands() && cmd.HasParent() && !cmd.Runnable() {
		cmd.Args = cobra.NoArgs
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	if check := cmd.Args; check != nil || cmd.Runnable() {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			_, name, _ := strings.Cut(cmd.CommandPath(), " ")
			if check != nil {
				if err := check(cmd, args); err != nil {
					return cli.Usage(fmt.Errorf("%s: %s; see: %s --help", name, wrongArguments(cmd, args, err), cmd.CommandPath()))
				}
			}
			if empty := emptyFlag(cmd); empty != "" {
				return cli.Usage(fmt.Errorf("%s: --%s is empty: give a value, or leave the flag out for its default; is a variable unset?", name, empty))
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		prepare(sub)
	}
}

// emptyFlag returns the name of a given flag without a value, or with an empty value in its list: "" is not the default.
func emptyFlag(cmd *cobra.Command) (name string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		if len(values) == 0 || slices.ContainsFunc(values, func(v string) bool { return strings.TrimSpace(v) == "" }) {
			name = f.Name
		}
	})
	return name
}

// wrongArguments describes an error of cobra about arguments: an unknown verb, or the wrong number.
func wrongArguments(cmd *cobra.Command, args []string, err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n") // cobra appends suggestions on further lines
	if !strings.Contains(first, " arg(s)") {
		return first
	}
	number := "1 argument"
	if len(args) != 1 {
		number = fmt.Sprintf("%d arguments", len(args))
	}
	return number + "; usage: " + strings.TrimSuffix(cmd.UseLine(), " [flags]")
}
