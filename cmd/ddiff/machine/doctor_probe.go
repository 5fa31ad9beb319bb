package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"ddiff/internal/cli"
	"ddiff/internal/restore/onnx/onnxruntime"
)

// newProbeCommand returns the command of the process that opens a device: a provider may crash.
func newProbeCommand() *cobra.Command {
	var library, openVINO string
	cmd := &cobra.Command{
		Use: "probe DEVICE", Short: "Open a device and print the version of ONNX Runtime", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return serveProbe(args[0], library, openVINO, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&library, "onnxruntime", "", "ONNX Runtime library")
	cmd.Flags().StringVar(&openVINO, "openvino", "", "library of OpenVINO")
	return cmd
}

func serveProbe(device, library, openVINO string, stdout io.Writer) error {
	d, err := onnxruntime.ParseDevice(device)
	if err != nil {
		return cli.Usage(err)
	}
	rt, err := onnxruntime.Open(onnxruntime.Config{Library: library, OpenVINO: openVINO, Provider: d.Provider, Device: d.Index})
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, rt.Version())
	return rt.Close()
}

// probe opens a device in a process of its own and returns the version of ONNX Runtime.
func probe(ctx context.Context, device, library, openVINO string) (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("locate this program's executable: %w", err)
	}
	args := []string{"doctor", "probe", device, "--onnxruntime", library}
	if openVINO != "" {
		args = append(args, "--openvino", openVINO)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		message, _ := strings.CutPrefix(strings.TrimSpace(stderr.String()), "ddiff: ")
		if message == "" {
			return "", err
		}
		return "", errors.New(message)
	}
	return strings.TrimSpace(stdout.String()), nil
}
