// Package tune has the command ddiff tune, which chooses settings on some images and reports them on others.
//
// Package coordinator/tune divides the images and races the settings. This package plans the races of a campaign, solves
// them with package embedded, and writes and prints the outcome.
package tune

import (
	"github.com/spf13/cobra"

	"ddiff/coordinator/shard"
)

// Commands returns the command of the package for the methods and operators of a catalogue.
func Commands(c shard.Catalogue) []*cobra.Command {
	return []*cobra.Command{newTuneCommand(c)}
}
