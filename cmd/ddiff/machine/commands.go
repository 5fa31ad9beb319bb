// Package machine has the commands that set up and check this machine: doctor and runtime.
//
// A command is one file and one name in [Commands].
package machine

import (
	"github.com/spf13/cobra"
)

// Commands returns the commands of the package, in the order of the help.
func Commands() []*cobra.Command {
	return []*cobra.Command{newDoctorCommand(), newRuntimeCommand()}
}
