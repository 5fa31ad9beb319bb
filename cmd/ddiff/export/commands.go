// Package export has the command ddiff export, which copies results into the layout of other programs: Weights & Biases,
// MLflow, and folders of images.
package export

import (
	"github.com/spf13/cobra"

	"ddiff/coordinator/shard"
)

// Commands returns the command of the package for the methods and operators of a catalogue.
func Commands(c shard.Catalogue) []*cobra.Command {
	return []*cobra.Command{newExportCommand(c)}
}
