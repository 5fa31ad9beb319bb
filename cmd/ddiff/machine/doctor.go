package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"ddiff/internal/cli"
	"ddiff/restore/gpucheck"
	"ddiff/restore/onnx/onnxruntime"
)

// doctorOptions are the flags of doctor.
type doctorOptions struct {
	json    bool
	gpu     bool
	quick   bool
	images  string
	out     string
	library string
	check   gpucheck.Config
}

func newDoctorCommand() *cobra.Command {
	o := doctorOptions{images: "examples/images"}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine's prerequisites, or check a GPU",
		Long: "List the prerequisites of this machine: what is found, what is missing, and the remedy.\n\n" +
			"With --gpu, check a device: differences from the CPU, speed, memory and signals. Write gpu-check.json, and\n" +
			"end with one line for scripts. docs/devices.md describes both.",
		Example: "  ddiff doctor\n" +
			"  ddiff doctor --gpu\n" +
			"  ddiff doctor --gpu --device webgpu --quick",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.gpu {
				return checkGPU(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			for _, name := range []string{"device", "quick", "size", "steps", "batches", "task", "only", "images", "threads", "out"} {
				if cmd.Flags().Changed(name) {
					return cli.Usage(fmt.Errorf("--%s needs --gpu; see: ddiff doctor --help", name))
				}
			}
			return checkMachine(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print one JSON object (without --gpu)")
	f.StringVar(&o.library, "onnxruntime", "", "ONNX Runtime library or its directory (default: searched)")
	f.BoolVar(&o.gpu, "gpu", false, "check a device")
	f.StringVar(&o.check.Device, "device", onnxruntime.ProviderCUDA, "device to check: cpu, cuda[:N], tensorrt[:N] or webgpu[:N]")
	f.BoolVar(&o.quick, "quick", false, "use small images, few steps and a small random network")
	f.IntVar(&o.check.Size, "size", 0, "side of the images in pixels (default 256, quick 32)")
	f.IntVar(&o.check.Steps, "steps", 0, "solver steps (default 60, quick 4)")
	f.IntSliceVar(&o.check.Batches, "batches", nil, "batch `sizes` to time (default 1,4,8,16; quick 1,2)")
	f.StringSliceVar(&o.check.Tasks, "task", nil, "`tasks` to compare (default: the eight of the paper)")
	f.StringSliceVar(&o.check.Only, "only", nil, "`sections` to run: "+strings.Join(gpucheck.Sections()[1:], ", ")+" (default: all)")
	f.StringVar(&o.images, "images", o.images, "directory of photographs (PNG)")
	f.IntVar(&o.check.Threads, "threads", 0, "CPU threads (0: one per core)")
	f.StringVarP(&o.out, "out", "o", ".", "directory for gpu-check.json")
	cmd.AddCommand(newSectionCommand(), newInferenceCommand())
	return cmd
}

// newSectionCommand returns the command of a process that a check starts.
func newSectionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "section NAME", Short: "Run one section of a check", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return gpucheck.ServeSection(cmd.Context(), args[0], cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// newInferenceCommand returns the command of the process that receives a check's signals.
func newInferenceCommand() *cobra.Command {
	return &cobra.Command{
		Use: "inference", Short: "Keep a device busy until a signal arrives", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return gpucheck.ServeInference(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// self returns a function that runs this program in a new process.
func self() (gpucheck.Self, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("locate this program's executable: %w", err)
	}
	return func(ctx context.Context, args ...string) *exec.Cmd {
		return exec.CommandContext(ctx, program, args...)
	}, nil
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
func checkMachine(ctx context.Context, o doctorOptions, stdout io.Writer) error {
	start, err := self()
	if err != nil {
		return err
	}
	findings := systemFindings(hostMachine())
	more, failure := runtimeFindings(ctx, o.library, start)
	findings = append(findings, more...)
	findings = append(findings, vulkanFindings()...)
	findings = append(findings, directoryFindings()...)
	if o.json {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		if err := e.Encode(map[string]any{"findings": findings}); err != nil {
			return err
		}
		return failure
	}
	out := cli.Escaped(stdout)
	for _, f := range findings {
		fmt.Fprintf(out, "%-8s %-18s %s\n", f.Status, f.Name, f.Detail)
		if f.Remedy != "" {
			fmt.Fprintf(out, "%-8s %-18s -> %s\n", "", "", f.Remedy)
		}
	}
	return failure
}
