// Package lookup has the commands that describe and check tasks, methods, priors and operator files.
//
// A command is one file and one name in [Commands].
package lookup

import (
	"github.com/spf13/cobra"

	"ddiff/coordinator/shard"
)

// Commands returns the commands of the package for the methods and operators of a catalogue, in the order of the help.
func Commands(c shard.Catalogue) []*cobra.Command {
	return []*cobra.Command{newTasksCommand(c), newMethodsCommand(c), newPriorCommand(), newOperatorCommand()}
}
