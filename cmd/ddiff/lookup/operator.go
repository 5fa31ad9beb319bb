package lookup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"ddiff/internal/cli"
	"ddiff/internal/redact"
	"ddiff/internal/restore/check"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/manifest"
)

func newOperatorCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "operator", Short: "Check operators and metrics in ONNX files"}
	var o checkOptions
	var tolerance float64
	inspect := &cobra.Command{
		Use: "check FILE", Short: "Check the gradient of an operator, or the interface of a metric", Args: cobra.ExactArgs(1),
		Long: "Run an operator y = A(x) or y = A(x; k) and compare its gradient, which reverse mode through the\n" +
			"file gives, with finite differences. If the card declares it linear, compare also ⟨Ax, w⟩ with\n" +
			"⟨x, Aᵀw⟩. For a metric, check its interface. Compare with the reference vectors beside the file.\n" +
			"Files for images of one size are run on that size. Exit code 3: a check failed; 7: the file cannot be used.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("size") {
				o.size = 0 // that of the file
			}
			return checkOperator(cmd.Context(), cmd.OutOrStdout(), args[0], o, tolerance)
		},
	}
	o.flags(inspect)
	inspect.Flags().Float64Var(&tolerance, "tolerance", 0.01, "largest relative error of the gradient")
	cmd.AddCommand(inspect)
	return cmd
}

func checkOperator(ctx context.Context, out io.Writer, path string, o checkOptions, tolerance float64) error {
	return o.withRuntime(ctx, func(rt *onnxruntime.Runtime) error {
		r, err := check.Operator(ctx, rt, path, check.OperatorOptions{Size: o.size, Tolerance: tolerance})
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w %s: no such file; name an ONNX file", cli.ErrOperator, redact.Address(path))
		}
		if err != nil {
			return fmt.Errorf("%w: %w", cli.ErrOperator, err)
		}
		if err := o.print(out, r, func() { showOperator(out, r) }); err != nil {
			return err
		}
		if len(r.Problems) > 0 {
			return fmt.Errorf("%s: %w: %s", path, cli.ErrMismatch, r.Problems[0])
		}
		return mismatch(path, r.Vectors)
	})
}

func showOperator(out io.Writer, r *check.OperatorReport) {
	r = cli.Clean(r)
	name := r.Name
	if name == "" {
		name = manifest.OperatorName(r.File)
	}
	fmt.Fprintf(out, "%s: %s %s", r.File, r.Kind, name)
	if r.Kind == check.KindOperator {
		fmt.Fprintf(out, ", image %v, output %v, values %.4g..%.4g", r.Image, r.Output, r.Min, r.Max)
	}
	fmt.Fprintln(out)
	for _, p := range r.Parameters {
		fmt.Fprintf(out, "parameter %s=%g, %s: %s\n", p.Name, p.Default, p.Range, p.Doc)
	}
	if g := r.Gradient; g != nil {
		fmt.Fprintf(out, "gradient against finite differences: error=%.3g (step %g, %d directions)\n", g.Error, g.Step, g.Directions)
	}
	if r.Adjoint != nil {
		fmt.Fprintf(out, "adjoint: error=%.3g\n", *r.Adjoint)
	}
	showAgreement(out, r.Vectors)
	for _, p := range r.Problems {
		fmt.Fprintln(out, "wrong:", p)
	}
	if r.Kind == check.KindMetric {
		return
	}
	fmt.Fprintf(out, "ms_per_call=%.1f peak_mib=%.0f\n", r.MSPerCall, r.PeakMiB)
}
