package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// execute runs one command line and returns the exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:   "ddiff",
		Short: "Restore whole datasets of images with Dual Ascent Diffusion (DDiff)",
		Long: "ddiff solves image inverse problems y = A(x) + noise with a pretrained diffusion prior\n" +
			"inside a linearised ADMM loop, over whole datasets.\n\n" + exitCodes,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newRunCommand(), newTasksCommand(), newPriorCommand(), newRuntimeCommand(),
		newVerifyCommand(), newReplayCommand(), newOperatorCommand(), newBenchCommand(), newVersionCommand(),
		newCoordinatorCommand(), newWorkerCommand(), newSubmitCommand(), newListCommand(), newStatusCommand(), newWatchCommand(),
		newRetryCommand(), newReconcileCommand(), newDeadCommand())
	root.AddCommand(newControlCommands()...)
	root.AddCommand(newDoctorCommand())
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(stderr, "ddiff:", message(err))
	}
	return exitCode(err)
}
