// Package export has the command ddiff export, which copies results into the layout of other programs: folders of images, and
// Parquet files with pictures. A new layout is a case of exportOptions.export; experiment trackers have recipes in examples/python instead.
package export

import "github.com/spf13/cobra"

// Commands returns the command of the package.
func Commands() []*cobra.Command { return []*cobra.Command{newExportCommand()} }
