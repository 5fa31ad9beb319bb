package cluster

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"ddiff/internal/cli"
)

// newFormerCommands are verbs under the names that they had before version 0.1. They are hidden, and go with the version after it.
func newFormerCommands() []*cobra.Command {
	dead := &cobra.Command{Use: "dead", Short: "List or retry dead items: now ddiff retry"}
	dead.AddCommand(
		former("list CAMPAIGN", "ddiff retry CAMPAIGN --list", cobra.ExactArgs(1), newRetryCommand(), "list"),
		former("show CAMPAIGN ITEM", "ddiff retry CAMPAIGN ITEM --list --json", cobra.ExactArgs(2), newRetryCommand(), "list", "json"),
		former("retry CAMPAIGN [ITEM...]", "ddiff retry CAMPAIGN --dead, or ITEM", cobra.MinimumNArgs(1), newRetryCommand(), "dead"),
		newFormerExport(),
	)
	all := []*cobra.Command{
		former("watch CAMPAIGN", "ddiff status CAMPAIGN --watch", cobra.ExactArgs(1), newStatusCommand(), "watch"),
		dead,
		former("reconcile CAMPAIGN", "ddiff retry CAMPAIGN --missing", cobra.ExactArgs(1), newRetryCommand(), "missing"),
	}
	for _, cmd := range all {
		cmd.Hidden = true
	}
	return all
}

// former gives a command an earlier name. It sets flags of the command, and writes its present form to standard error.
func former(use, now string, args cobra.PositionalArgs, cmd *cobra.Command, flags ...string) *cobra.Command {
	run := cmd.RunE
	cmd.Use, cmd.Short, cmd.Long, cmd.Example = use, "Now "+now, "", ""
	cmd.Args = args
	for _, name := range flags {
		_ = cmd.Flags().MarkHidden(name) // the command has the flag
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		fmt.Fprintf(cmd.ErrOrStderr(), "ddiff: note: %s is now: %s\n", cmd.CommandPath(), now)
		for _, name := range flags {
			if err := cmd.Flags().Set(name, "true"); err != nil {
				return err
			}
		}
		return run(cmd, args)
	}
	return cmd
}

// newFormerExport is dead export, which could write to a new file.
func newFormerExport() *cobra.Command {
	cmd := former("export CAMPAIGN", "ddiff retry CAMPAIGN --list --json > FILE", cobra.ExactArgs(1), newRetryCommand(), "list", "json")
	run := cmd.RunE
	out := cmd.Flags().StringP("out", "o", "", "a new `file` (default: standard output)")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if *out == "" {
			return run(cmd, args)
		}
		f, err := os.OpenFile(*out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return cli.Usage(fmt.Errorf("--out: %w", err))
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		cmd.SetOut(f)
		return run(cmd, args)
	}
	return cmd
}
