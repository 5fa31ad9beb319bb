package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"ddiff/restore/onnx/install"
)

// release is the version of this source tree; CHANGELOG.md has the same.
const release = "0.1.0"

// version is the release with the commit it was built from, where the build knows it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return fmt.Sprintf("%s+%.12s", release, s.Value)
		}
	}
	return release
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version, and the ONNX Runtime that would be used", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintf(cmd.OutOrStdout(), "ddiff %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			lib, err := install.Locate(install.LocateOptions{})
			if err != nil {
				fmt.Fprintln(cmd.OutOrStdout(), "ONNX Runtime: not found; run: ddiff runtime install")
				return nil //nolint:nilerr // the answer to the question is that it is missing
			}
			fmt.Fprintf(cmd.OutOrStdout(), "ONNX Runtime %s %s (%s)\n", lib.Version, lib.Path, lib.Source)
			return nil
		},
	}
}
