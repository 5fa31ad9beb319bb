package lookup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ddiff/internal/cli"
	"ddiff/internal/redact"
	"ddiff/internal/regular"
	"ddiff/internal/report/table"
	"ddiff/internal/restore/check"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/raster"
)

// checkOptions are the flags of the commands that check files.
type checkOptions struct {
	run    cli.ComputeOptions
	size   int
	images string
	json   bool
}

func (o *checkOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&o.size, "size", 256, "side of the images in pixels, rounded up to the card's multiple_of")
	f.BoolVar(&o.json, "json", false, "print JSON")
	o.run.AddDevice(f, onnxruntime.ProviderCPU)
}

func newPriorCheckCommand() *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use: "check FILE|DIR|bundled", Short: "Run a prior or a bundle on noise, images and reference vectors",
		Args: cobra.ExactArgs(1),
		Long: "Load a prior with its card, run it at ten noise levels on pure noise and on the images of a folder,\n" +
			"and compare it with the reference vectors that its exporter wrote beside it. A folder with a\n" +
			"bundle.json is a latent prior: check its parts and their shapes together, and the error of decoded\n" +
			"latents on the images.\n" +
			"Exit code 3: the prior differs from its vectors; 7: it cannot be used.",
		Example: "  ddiff prior check ffhq.onnx --images photos --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return checkPrior(cmd.Context(), cmd.OutOrStdout(), args[0], o)
		},
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&o.images, "images", "", "folder of photographs to denoise, or to encode and decode")
	return cmd
}

func checkPrior(ctx context.Context, out io.Writer, path string, o checkOptions) error {
	if path != prior.Bundled && path != prior.Base {
		switch _, err := os.Stat(path); {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w %s: no such file; use bundled, an ONNX file or a bundle's folder", cli.ErrPrior, redact.Address(path))
		case err != nil:
			return fmt.Errorf("%w: %w", cli.ErrPrior, err)
		}
	}
	return o.withRuntime(ctx, func(rt *onnxruntime.Runtime) error {
		images, err := o.photographs(path)
		if err != nil {
			return err
		}
		r, err := check.Prior(ctx, rt, path, check.PriorOptions{Size: o.size, Images: images})
		if err != nil {
			return fmt.Errorf("%w: %w", cli.ErrPrior, err)
		}
		if err := o.print(out, r, func() { showPrior(out, r) }); err != nil {
			return err
		}
		if r.BundleReport == nil {
			return mismatch(path, r.Vectors)
		}
		for _, p := range r.Parts {
			if err := mismatch(filepath.Join(path, p.File), p.Vectors); err != nil {
				return err
			}
		}
		return nil
	})
}

// withRuntime opens ONNX Runtime, calls use and closes it. At the end of ctx it returns at once, see [leaving].
func (o checkOptions) withRuntime(ctx context.Context, use func(rt *onnxruntime.Runtime) error) error {
	return leaving(ctx, func() error {
		rt, err := o.run.Open(slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		return errors.Join(use(rt), rt.Close())
	})
}

// leaving calls f, and leaves it behind at the end of ctx, when the process ends: the library may compile a large model for minutes and
// cannot be interrupted.
func leaving(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// print writes the report as JSON, or as text by show.
func (o checkOptions) print(out io.Writer, report any, show func()) error {
	if !o.json {
		show()
		return nil
	}
	return json.NewEncoder(out).Encode(report)
}

// mismatch returns cli.ErrMismatch for a file that differs from its vectors, else nil.
func mismatch(path string, a *check.Agreement) error {
	if a == nil || a.OK {
		return nil
	}
	return fmt.Errorf("%s: %w with its reference vectors (%s): max_abs=%.3g psnr=%.1f", path, cli.ErrMismatch, a.Precision, a.MaxAbs, a.PSNR)
}

// photographs reads the images of --images at the size of the prior at path.
func (o checkOptions) photographs(path string) ([]*raster.Image, error) {
	if o.images == "" {
		return nil, nil
	}
	p, err := cli.OpenPrior(path)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(o.images)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("--images: %w", err))
	}
	m := p.Card.MultipleOf
	size := (cmp.Or(p.Card.Fixed[0], o.size) + m - 1) / m * m
	var out []*raster.Image
	for _, e := range entries {
		if !slices.Contains([]string{".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp"}, strings.ToLower(filepath.Ext(e.Name()))) {
			continue
		}
		name := filepath.Join(o.images, e.Name())
		img, err := photograph(name, p.Card.Channels, size, m)
		if err != nil {
			return nil, cli.Usage(fmt.Errorf("--images: %s: %w", name, err))
		}
		out = append(out, img)
	}
	if len(out) == 0 {
		return nil, cli.Usage(fmt.Errorf("--images: %s contains no photographs; name a folder of PNG, JPEG, TIFF or WebP files", o.images))
	}
	return out, nil
}

func photograph(name string, channels, size, multiple int) (*raster.Image, error) {
	data, err := regular.Read(name, raster.MaxBytes)
	if err != nil {
		return nil, err
	}
	img, err := raster.Decode(data)
	if err == nil {
		img, err = raster.InChannels(img, channels)
	}
	if err != nil {
		return nil, err
	}
	return raster.Fit(img, raster.CenterCrop, size, multiple)
}

func showPrior(out io.Writer, r *check.PriorReport) {
	r = cli.Clean(r)
	fmt.Fprintf(out, "%s: %s, %d parameters, run at %v\n\n", r.File, r.Name, r.Parameters, r.Shape)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := "t\tabar\tmean\tstd\tmse on noise"
	if len(r.Images) > 0 {
		head += "\tsigma\tnoisy dB\tdenoised dB\tmse on images"
	}
	fmt.Fprintln(w, head+"\t")
	for i, n := range r.Noise {
		fmt.Fprintf(w, "%d\t%.5f\t%.4f\t%.4f\t%.5f", n.T, n.AlphaBar, n.Mean, n.Std, n.MSE)
		if len(r.Images) > 0 {
			m := r.Images[i]
			fmt.Fprintf(w, "\t%.3f\t%.2f\t%.2f\t%.5f", m.Sigma, m.Noisy, m.Denoised, m.MSE)
		}
		fmt.Fprintln(w, "\t")
	}
	_ = w.Flush() // standard output, as above
	showFits(out, r.Fits)
	for _, s := range r.Warnings {
		fmt.Fprintln(out, "\nwarning:", s)
	}
	fmt.Fprintln(out)
	if r.BundleReport != nil {
		showBundle(out, r.BundleReport)
	} else {
		showAgreement(out, r.Vectors)
	}
	fmt.Fprintf(out, "ms_per_call=%.1f peak_mib=%.0f\n", r.MSPerCall, r.PeakMiB)
}

// showFits prints how well the network denoises as the card says, and as other cards would.
func showFits(out io.Writer, fits []prior.Fit) {
	if len(fits) == 0 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "\ncard\tprediction\tschedule")
	for _, level := range prior.FitLevels() {
		fmt.Fprintf(w, "\terror at sigma %g", level)
	}
	for i, f := range fits {
		fmt.Fprintf(w, "\n%s\t%s\t%.40s", []string{"this", "another"}[min(i, 1)], f.Prediction, f.Schedule)
		for _, e := range f.Errors {
			fmt.Fprintf(w, "\t%.4g", e)
		}
	}
	fmt.Fprintln(w)
	_ = w.Flush()
}

func showAgreement(out io.Writer, a *check.Agreement) {
	if a == nil {
		fmt.Fprintln(out, "no reference vectors")
		return
	}
	fmt.Fprintf(out, "reference vectors (%s): max_abs=%.3g psnr=%.1f ok=%v\n", a.Precision, a.MaxAbs, a.PSNR, a.OK)
}

func showBundle(out io.Writer, r *check.BundleReport) {
	fmt.Fprintf(out, "first stage %s, latent %v\n", r.FirstStage, r.Latent)
	for _, p := range r.Parts {
		fmt.Fprintf(out, "%s: %d parameters, ms_per_call=%.1f; ", p.File, p.Parameters, p.MSPerCall)
		showAgreement(out, p.Vectors)
	}
	of := fmt.Sprintf("%d photographs", r.Reconstruction.Images)
	if r.Reconstruction.Images == 0 {
		of = "an image of slow waves"
	}
	fmt.Fprintf(out, "reconstruction of %s: psnr=%.2f max_abs=%.3g\n", of, r.Reconstruction.PSNR, r.Reconstruction.MaxAbs)
	fmt.Fprintf(out, "latents: mean=%.4f std=%.4f scale=%g\n", r.Latents.Mean, r.Latents.Std, r.Scale)
	if r.Gradient {
		fmt.Fprintln(out, "gradient of the decoder: available")
	} else {
		fmt.Fprintf(out, "gradient of the decoder: none, so mode latent_dc cannot run: %s\n", r.NoGradient)
	}
}

func newPriorCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "prior", Short: "Inspect and check score models, and edit their cards"}
	var asJSON bool
	inspect := &cobra.Command{
		Use: "inspect FILE|DIR|bundled", Short: "Print a prior's card", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return inspectPrior(cmd.OutOrStdout(), args[0], asJSON) },
	}
	inspect.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	var settings []string
	var target string
	card := &cobra.Command{
		Use: "card FILE", Short: "Set entries of a prior's model card", Args: cobra.ExactArgs(1),
		Example: "  ddiff prior card unet.onnx --set card=1 --set name=ffhq \\\n      --set prediction=epsilon",
		RunE: func(cmd *cobra.Command, args []string) error {
			if target == "" {
				target = args[0]
			}
			return writeCard(cmd.OutOrStdout(), args[0], target, settings)
		},
	}
	card.Flags().StringArrayVar(&settings, "set", nil, "`KEY=VALUE`, repeatable; keys: "+
		strings.Join(slices.Concat(prior.Keys()), ", "))
	card.Flags().StringVarP(&target, "out", "o", "", "write to this file instead of replacing FILE")
	cmd.AddCommand(inspect, card, newPriorCheckCommand())
	return cmd
}

func inspectPrior(out io.Writer, path string, asJSON bool) error {
	p, err := cli.OpenPrior(path)
	if err != nil {
		return err
	}
	c := p.Card
	if asJSON {
		return json.NewEncoder(out).Encode(map[string]any{
			"file": path, "sha256": p.SHA256, "parameters": p.Parameters(), "opset": p.Opset(), "card": c,
		})
	}
	w := table.NewWriter(out)
	rows := [][2]any{
		{"file", path}, {"sha256", p.SHA256}, {"name", c.Name}, {"prediction", c.Prediction},
		{"schedule", c.Schedule}, {"steps", p.Schedule.Steps()}, {"range", c.Range}, {"channels", c.Channels},
		{"multiple of", c.MultipleOf}, {"learned variance", c.LearnedVariance}, {"parameters", p.Parameters()},
		{"operator set", p.Opset()}, {"licence", c.License}, {"training", c.Training},
	}
	if c.Fixed != [2]int{} {
		rows = append(rows, [2]any{"only images of", fmt.Sprintf("%d×%d", c.Fixed[1], c.Fixed[0])})
	}
	if l := c.Latent; l != nil {
		rows = append(rows, [][2]any{
			{"first stage", l.FirstStage}, {"latent channels", l.Channels}, {"factor", l.Factor}, {"scale", l.Scale}, {"class", l.Class},
			{"gradient of the decoder", cmp.Or(l.NoGradient, "available")},
		}...)
	}
	for _, row := range rows {
		fmt.Fprintf(w, "%v\t%s\n", row[0], cli.Printable(fmt.Sprint(row[1])))
	}
	return w.Flush()
}

// writeCard sets entries of a prior's card; graph and weights do not change.
func writeCard(out io.Writer, path, target string, settings []string) error {
	entries, err := prior.Entries(settings)
	if err != nil {
		return cli.Usage(err)
	}
	if len(entries) == 0 {
		return cli.Usage(fmt.Errorf("no entry to set: use --set KEY=VALUE"))
	}
	if err := prior.SetCard(path, target, entries); err != nil {
		return fmt.Errorf("%w: %w", cli.ErrPrior, err)
	}
	fmt.Fprintf(out, "wrote %d entries to %s\n", len(entries), target)
	return nil
}
