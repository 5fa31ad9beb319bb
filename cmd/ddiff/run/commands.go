// Package run has the commands ddiff run and ddiff restore, which restore images in this process.
//
// Both read their flags into [campaign.Options] and run the campaign with package embedded. The package adds the plan of a
// dry run, and the restored pictures of ddiff restore beside their inputs.
package run

import (
	"github.com/spf13/cobra"

	"ddiff/coordinator/shard"
)

// Commands returns the commands of the package for the methods and operators of a catalogue, in the order of the help.
func Commands(c shard.Catalogue) []*cobra.Command {
	return []*cobra.Command{newRestoreCommand(c), newRunCommand(c)}
}
