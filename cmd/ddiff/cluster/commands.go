// Package cluster has the processes of a cluster, coordinator and worker, and the commands that people send to it.
//
// The commands speak to the board of the NATS servers, or to the API of a coordinator: see backend.go. delete and gc also open the cluster's store. ddiff gc collects the
// garbage of local outputs and dead runs of this machine as well, with the same flags and the same table.
//
// A command is one file and one name in [Commands], except gc, which root.go lists apart. A verb that reads what only the leader knows asks it with package coordinator/archive, as logs.go does.
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
	return append(commands, newRetryCommand(), newAppendCommand(), newLogsCommand(), newDeleteCommand(), newTokenCommand())
}
