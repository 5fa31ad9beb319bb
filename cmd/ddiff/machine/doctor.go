// Package machine has the commands that set up and check this machine: doctor and runtime.
//
// A command is one file and one name in [Commands].
package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ddiff/coordinator/report/table"
	"ddiff/internal/cli"
)

func newDoctorCommand() *cobra.Command {
	var asJSON bool
	var library string
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Check this machine's devices",
		Long:    "List ONNX Runtime and the devices of this machine: what is found, what is missing, and the remedy. docs/devices.md has more.",
		Example: "  ddiff doctor",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return checkMachine(cmd.Context(), library, asJSON, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().StringVar(&library, "onnxruntime", "", "ONNX Runtime library (default: searched)")
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

// checkMachine prints all findings. It returns an error only if ONNX Runtime cannot be used on the CPU, the one
// prerequisite of all work.
func checkMachine(ctx context.Context, library string, asJSON bool, stdout io.Writer) error {
	findings, failure := runtimeFindings(ctx, library)
	if asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		if err := e.Encode(map[string]any{"findings": findings}); err != nil {
			return err
		}
		return failure
	}
	out := table.NewWriter(stdout)
	for _, f := range cli.Clean(findings) {
		fmt.Fprintf(out, "%s\t%s\t%s\n", f.Status, f.Name, f.Detail)
		if f.Remedy != "" {
			fmt.Fprintf(out, "\t\t-> %s\n", f.Remedy)
		}
	}
	return errors.Join(out.Flush(), failure)
}

// Commands returns the commands of the package, in the order of the help.
func Commands() []*cobra.Command {
	return []*cobra.Command{newDoctorCommand(), newRuntimeCommand()}
}
