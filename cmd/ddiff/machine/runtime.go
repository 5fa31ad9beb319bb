package machine

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"ddiff/internal/restore/onnx/install"
	"ddiff/internal/restore/onnx/onnxruntime"
)

func newRuntimeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "runtime", Short: "Find or install ONNX Runtime"}
	opts := install.Options{}
	inst := &cobra.Command{
		Use: "install", Short: "Install a pinned ONNX Runtime into the user's cache", Args: cobra.NoArgs,
		Long: "Download ONNX Runtime with the first client that works: npm, pip, or curl from the project's release\n" +
			"page (cpu); Maven with CUDA 12, or pip with CUDA 13 (cuda). Or take it from an archive. Verify the archive\n" +
			"and each of its files against pinned digests, and install it. Without flags, also install OpenVINO, with\n" +
			"pip, on x86-64 Linux with AVX2; --ep cpu leaves it out.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts.Progress = func(stage string) { fmt.Fprintln(cmd.ErrOrStderr(), stage) }
			opts.Fallback = func(failed string, err error, next string) {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s; next: %s\n", failed, firstLine(err), next)
			}
			lib, err := install.Install(cmd.Context(), opts)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s\n", lib.Path)
			if lib.EP == install.CUDA {
				if err := install.CUDALoadable(lib); err != nil {
					fmt.Fprintln(cmd.ErrOrStderr(), "note:", err)
				}
			}
			if opts.EP == "" && opts.Client == "" && opts.From == "" {
				return installOpenVINO(cmd, opts)
			}
			return nil
		},
	}
	inst.Flags().StringVar(&opts.EP, "ep", "", "only the build for an execution provider: cpu, cuda, or openvino (beside that for cpu)")
	inst.Flags().StringVar(&opts.Client, "client", "", "download with npm, pip, curl or maven; default: the first that works")
	inst.Flags().StringVar(&opts.From, "from", "", "archive to install from")
	where := &cobra.Command{
		Use: "where", Short: "Print the path of the library in use", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			lib, err := install.Locate(install.LocateOptions{})
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s\n", lib.Path)
			return nil
		},
	}
	cmd.AddCommand(inst, where)
	return cmd
}

// installOpenVINO installs OpenVINO beside ONNX Runtime, where it has a build and the processor can use it. A failure is a note only:
// ONNX Runtime computes without it.
func installOpenVINO(cmd *cobra.Command, opts install.Options) error {
	if !onnxruntime.OpenVINOUsable() {
		return nil
	}
	stderr := cmd.ErrOrStderr()
	opts.EP = install.OpenVINO
	opts.Progress = func(stage string) { fmt.Fprintln(stderr, "OpenVINO:", stage) }
	switch _, err := install.Install(cmd.Context(), opts); {
	case err == nil, errors.Is(err, install.ErrUnsupported):
	case cmd.Context().Err() != nil:
		return err
	default:
		fmt.Fprintf(stderr, "note: ONNX Runtime computes without OpenVINO: %s; to try again: ddiff runtime install --ep openvino\n", firstLine(err))
	}
	return nil
}
