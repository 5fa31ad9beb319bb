// Package machine has the commands that set up and check this machine: doctor and runtime.
//
// A command is one file and one name in [Commands].
package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ddiff/api"
	"ddiff/internal/cli"
	"ddiff/internal/cli/server"
	"ddiff/internal/report/table"
)

func newDoctorCommand() *cobra.Command {
	var asJSON bool
	var library, file string
	var from server.Flags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine's devices",
		Long: "List ONNX Runtime and the devices of this machine: what is found, what is missing, and the remedy. docs/devices.md has more.\n" +
			"--bundle writes a file for those who help: versions, devices, names of environment variables, and with --server the\n" +
			"campaigns and workers of a cluster; without secrets.",
		Example: "  ddiff doctor\n  ddiff doctor --bundle bundle.tar.gz --server https://host:8620",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				findings, failure := runtimeFindings(cmd.Context(), library)
				return errors.Join(printFindings(cmd.OutOrStdout(), findings, "", asJSON), failure)
			}
			var client *api.Client
			if from.Named() != "" {
				var err error
				if client, err = from.Client(); err != nil {
					return err
				}
			}
			findings, _ := runtimeFindings(cmd.Context(), library) // what is missing is in the bundle
			err := collect(cmd.Context(), findings, client, answerLimit).write(file)
			if err == nil && asJSON {
				err = printFindings(cmd.OutOrStdout(), findings, file, true)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().StringVar(&library, "onnxruntime", "", "ONNX Runtime library (default: searched)")
	cmd.Flags().StringVar(&file, "bundle", "", "write a `file`.tar.gz for support in place of the list")
	from.Add(cmd.Flags(), "for --bundle, $"+server.Env)
	cmd.AddCommand(newProbeCommand())
	return cmd
}

// finding is one prerequisite, found or missing.
type finding struct {
	Name   string `json:"name"`
	Status string `json:"status"` // ok or missing
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

func found(name, format string, args ...any) finding {
	return finding{Name: name, Status: "ok", Detail: fmt.Sprintf(format, args...)}
}

func missing(name, detail, remedy string) finding {
	return finding{Name: name, Status: "missing", Detail: detail, Remedy: remedy}
}

// printFindings prints all findings; JSON also has the name of a bundle.
func printFindings(stdout io.Writer, findings []finding, bundle string, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return e.Encode(struct {
			Findings []finding `json:"findings"`
			Bundle   string    `json:"bundle,omitempty"`
		}{findings, bundle})
	}
	out := table.NewWriter(stdout)
	for _, f := range cli.Clean(findings) {
		fmt.Fprintf(out, "%s\t%s\t%s\n", f.Status, f.Name, f.Detail)
		if f.Remedy != "" {
			fmt.Fprintf(out, "\t\t-> %s\n", f.Remedy)
		}
	}
	return out.Flush()
}

// Commands returns the commands of the package, in the order of the help.
func Commands() []*cobra.Command {
	return []*cobra.Command{newDoctorCommand(), newRuntimeCommand()}
}
