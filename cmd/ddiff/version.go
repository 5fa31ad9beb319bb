package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"ddiff/internal/cli"
	"ddiff/internal/restore/onnx/install"
)

func newVersionCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version and the ONNX Runtime in use", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			lib, err := install.Locate(install.LocateOptions{})
			return printVersion(cmd.OutOrStdout(), lib, err == nil, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, also with commit, tag and pinned versions")
	return cmd
}

// versionReport is the output of ddiff version --json.
type versionReport struct {
	cli.Build
	// Library is the ONNX Runtime in use, or nil.
	Library *libraryReport `json:"library,omitempty"`
}

// libraryReport is the ONNX Runtime in use.
type libraryReport struct {
	Version string `json:"version"`
	Path    string `json:"path"`
	Source  string `json:"source"`
}

// printVersion prints the version with the library in use, if there is one.
func printVersion(out io.Writer, lib install.Library, found, asJSON bool) error {
	if asJSON {
		info, _ := debug.ReadBuildInfo()
		r := versionReport{Build: cli.ReportBuild(info)}
		if found {
			r.Library = &libraryReport{lib.Version, lib.Path, lib.Source}
		}
		return json.NewEncoder(out).Encode(r)
	}
	fmt.Fprintf(out, "ddiff %s %s %s/%s\n", cli.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if !found {
		fmt.Fprintln(out, "ONNX Runtime: not found; run: ddiff runtime install")
		return nil
	}
	fmt.Fprintf(out, "ONNX Runtime %s %s (%s)\n", lib.Version, lib.Path, lib.Source)
	return nil
}
