// Package results has the commands that read stored results: verify, replay, pull, score, report, compare, view and export.
//
// They only read outputs, except ddiff score, which stores its scores beside the results. A command is one file and one name in [Commands].
package results

import (
	"github.com/spf13/cobra"

	"ddiff/coordinator/shard"
)

// Commands returns the commands of the package for the methods and operators of a catalogue, in the order of the help.
func Commands(c shard.Catalogue) []*cobra.Command {
	return []*cobra.Command{newVerifyCommand(), newReplayCommand(c), newPullCommand(), newScoreCommand(), newReportCommand(c), newCompareCommand(c), newViewCommand(), newExportCommand()}
}
