// Package export has the command ddiff export, which copies the pictures of results into folders for other programs. Programs with
// a library for Python have recipes instead: examples/python and docs/scripting.md.
package export

import "github.com/spf13/cobra"

// Commands returns the command of the package.
func Commands() []*cobra.Command { return []*cobra.Command{newExportCommand()} }
