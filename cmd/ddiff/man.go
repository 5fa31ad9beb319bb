package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

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
			n, err := writeManual(cmd.Root(), args[0])
			if err != nil {
				return fmt.Errorf("man: %w", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "pages=%d dir=%s\n", n, args[0])
			return nil
		},
	}
}

// writeManual writes the pages of a command and of all commands and help topics below it, and returns their number.
func writeManual(cmd *cobra.Command, dir string) (int, error) {
	cmd.DisableAutoGenTag = true
	cmd.InitDefaultHelpFlag()
	var page bytes.Buffer
	if err := doc.GenMan(cmd, manualHeader(), &page); err != nil {
		return 0, fmt.Errorf("render %s: %w", cmd.CommandPath(), err)
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
	if err := os.WriteFile(filepath.Join(dir, name), page.Bytes(), 0o644); err != nil {
		return 0, err
	}
	n := 1
	for _, c := range cmd.Commands() {
		if c.Hidden || c.Name() == "help" {
			continue
		}
		more, err := writeManual(c, dir)
		if err != nil {
			return n, err
		}
		n += more
	}
	return n, nil
}

// manualHeader dates the pages by the commit, so that one build always writes the same pages.
func manualHeader() *doc.GenManHeader {
	day := cli.CommitTime()
	return &doc.GenManHeader{Section: "1", Source: "ddiff " + cli.Version(), Manual: "ddiff", Date: &day}
}
