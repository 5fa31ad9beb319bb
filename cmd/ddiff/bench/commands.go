// Package bench has the command ddiff bench, which compares a campaign's speed with the score network alone and with PyTorch.
//
// It times whole campaigns in this process with package embedded, and PyTorch in a process of its own.
package bench

import (
	"github.com/spf13/cobra"
)

// Commands returns the command of the package.
func Commands() []*cobra.Command {
	return []*cobra.Command{newBenchCommand()}
}
