package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"ddiff/internal/cli"
)

func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write manual pages to a directory",
		Long: "Write one manual page per command to DIR, as ddiff.1, ddiff-run.1 and so on. The pages are the same\n" +
			"for every call of one build.",
		Example: "  ddiff man ~/.local/share/man/man1 && man ddiff-run",
		Args:    cobra.ExactArgs(1),
		Hidden:  true, // the last lines of the help name it
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return cli.Usage(fmt.Errorf("man: %w; name a directory that you can write to", err))
			}
			cmd.Root().DisableAutoGenTag = true
			if err := doc.GenManTree(cmd.Root(), manualHeader(), args[0]); err != nil {
				return fmt.Errorf("man: %w", err)
			}
			return nil
		},
	}
}

// manualHeader dates the pages by the commit, so that one build always writes the same pages.
func manualHeader() *doc.GenManHeader {
	day := cli.CommitTime()
	return &doc.GenManHeader{Section: "1", Source: "ddiff " + cli.Version(), Manual: "ddiff", Date: &day}
}
