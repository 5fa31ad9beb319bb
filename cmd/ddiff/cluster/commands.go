// Package cluster has the processes of a cluster, coordinator and worker, and the commands that people send to it.
//
// The commands speak HTTP to a coordinator: see verb.go. Only the processes connect to NATS. ddiff gc collects the garbage of local outputs, of dead
// runs of this machine and of a cluster's store, with the table of ddiff delete.
//
// A command is one file and one name in [Commands], except gc, which root.go lists apart.
package cluster

import (
	"github.com/spf13/cobra"

	"ddiff/manifest"
)

// Commands returns the commands of the package for the methods and operators of a catalogue, in the order of the help.
func Commands(c manifest.Catalogue) []*cobra.Command {
	commands := []*cobra.Command{
		newCoordinatorCommand(c), newWorkerCommand(c), newWorkersCommand(), newSubmitCommand(c), newListCommand(), newStatusCommand(), newTopCommand(),
	}
	commands = append(commands, newControlCommands()...)
	return append(commands, newRetryCommand(), newAppendCommand(), newLogsCommand(), newDeleteCommand(), newTokenCommand(), newLoginCommand())
}
