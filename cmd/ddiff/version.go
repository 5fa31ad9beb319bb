package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"ddiff/restore/onnx/install"
)

// release is the version of this source tree, as in CHANGELOG.md.
const release = "0.1.0"

// version returns the release with the commit of the build, where the build knows it.
func version() string {
	if commit := buildSetting("vcs.revision"); commit != "" {
		return fmt.Sprintf("%s+%.12s", release, commit)
	}
	return release
}

// commitTime returns the time of the commit of the build, or the start of 1970 where the build does not know it.
func commitTime() time.Time {
	t, err := time.Parse(time.RFC3339, buildSetting("vcs.time"))
	if err != nil {
		return time.Unix(0, 0).UTC()
	}
	return t.UTC()
}

// buildSetting returns a setting that the Go tool recorded in this program, or "".
func buildSetting(key string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version and the ONNX Runtime in use", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintf(cmd.OutOrStdout(), "ddiff %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			lib, err := install.Locate(install.LocateOptions{})
			if err != nil {
				fmt.Fprintln(cmd.OutOrStdout(), "ONNX Runtime: not found; run: ddiff runtime install")
				return nil //nolint:nilerr // a missing runtime is an answer
			}
			fmt.Fprintf(cmd.OutOrStdout(), "ONNX Runtime %s %s (%s)\n", lib.Version, lib.Path, lib.Source)
			return nil
		},
	}
}
