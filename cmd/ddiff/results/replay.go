package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ddiff/internal/cli"
	"ddiff/internal/cli/campaign"
	"ddiff/internal/regular"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/metric"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/solver"
	"ddiff/manifest"
	"ddiff/restore"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// tolerance is the largest difference of a replay, in grey levels, that float32 rounding explains: other batches,
// threads and devices add in another order.
const tolerance = 1

// replayOptions are the flags of replay.
type replayOptions struct {
	prior string
	root  string
	run   cli.ComputeOptions // device, threads, library
}

func newReplayCommand(c manifest.Catalogue) *cobra.Command {
	var o replayOptions
	o.run.Catalogue = c
	cmd := &cobra.Command{
		Use:   "replay OUTPUT",
		Short: "Restore one image again from its passport, and compare",
		Long: "Read the passport of a restored image, restore the image again, alone in its batch, and print\n" +
			"  replay=R max_levels=N measurement=M psnr_delta=D\n" +
			"R is bit-equal, within-tolerance (at most 1 grey level) or different; N is the largest difference in grey\n" +
			"levels; M is bit-equal, different or stored; D is the new PSNR minus the old one, or none.\n\n" +
			"The source image is read from its old path or below --root. Where it is missing, the measurement.npy\n" +
			"beside OUTPUT replaces it (measurement=stored). OUTPUT is one image, as in ddiff verify.",
		Example: "  ddiff replay out/restored/coffee.hdr.png\n" +
			"  ddiff replay photo.png --root ./photos --prior unet.onnx\n" +
			"  ddiff replay \"s3://results/demo/items/ID?endpoint=https://host\"",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.replay(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.prior, "prior", prior.Bundled, "bundled, bundled:base, an ONNX file or the `folder` of a bundle")
	f.StringVar(&o.root, "root", "", "`directory` that has the source image, if it was moved")
	o.run.AddDevice(f, onnxruntime.ProviderAuto)
	return cmd
}

// replay restores the image that arg names again, and prints the comparison.
func (o replayOptions) replay(ctx context.Context, arg string, stdout, stderr io.Writer) error {
	var out *output
	for t, err := range restoredImages(ctx, arg) {
		if err != nil {
			return err
		}
		if out != nil {
			return cli.Usage(fmt.Errorf("%s: has several images; name one of them", arg))
		}
		out = &output{File: t.path, from: t.origin}
		out.read(ctx)
	}
	if out.Newer && out.passport == nil {
		return fmt.Errorf("%s: %w; replay it with that version", out.File, item.ErrNewer)
	}
	for _, p := range out.Problems {
		fmt.Fprintln(stderr, "ddiff:", cli.Printable(fmt.Sprint(p)))
	}
	if out.passport == nil || out.image == nil {
		return fmt.Errorf("%w: %s cannot be replayed", cli.ErrMismatch, out.File)
	}
	if w, h := out.passport.Item.RestoredSize(); w != out.image.Width || h != out.image.Height {
		return fmt.Errorf("%w: %s cannot be replayed: its passport is for another size", cli.ErrMismatch, out.File)
	}
	again, err := o.recompute(ctx, out, stderr)
	if err != nil && len(out.Problems) > 0 {
		return fmt.Errorf("%w: %w", cli.ErrMismatch, err)
	}
	if err != nil {
		return err
	}
	return again.compare(out, stdout)
}

// replayed is an image that was restored again.
type replayed struct {
	*job.Recomputed
	stored bool // from the arrays beside the image
}

// recompute restores the image again from the prior and the inputs of its passport.
func (o replayOptions) recompute(ctx context.Context, out *output, stderr io.Writer) (again replayed, err error) {
	item := out.passport.Item
	p, err := cli.OpenPrior(o.prior)
	if err != nil {
		return again, err
	}
	if p.SHA256 != item.Prior {
		return again, fmt.Errorf("%w %s: its SHA-256 is %.12s, %s was made with %.12s; give that file with --prior", cli.ErrPrior, o.prior, p.SHA256, out.File, item.Prior)
	}
	var own []*operator.File
	if item.Operator != nil {
		f, err := findOperator(*item.Operator, o.root)
		if err != nil {
			return again, fmt.Errorf("replay %s: %w", out.File, err)
		}
		own = append(own, f)
	}
	in, err := findInputs(ctx, out, o.root)
	if err != nil {
		return again, err
	}
	if in.reason != "" {
		fmt.Fprintf(stderr, "ddiff: note: %s; using the arrays beside %s\n", cli.Printable(in.reason), cli.Printable(out.File))
	}
	rt, err := o.run.Open(slog.New(slog.DiscardHandler))
	if err != nil {
		return again, err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	was := out.passport.Runtime
	precision := was.Precision
	if !rt.Computes(precision) {
		fmt.Fprintf(stderr, "ddiff: note: the network was computed in %s, the replay computes it in %s: the difference may exceed rounding in float32\n", cli.Printable(string(precision)), onnxruntime.FP32)
		precision = onnxruntime.FP32
	}
	in.item.Precision = "" // the engine's
	build := solver.Build{Precision: precision}
	if rt.Provider() == was.Provider {
		build.Form = prior.Form(was.Form)
	}
	cfg := o.run.Engine(build)
	cfg.ChooseOn = "" // the form is the recorded one
	engine, err := restore.OpenEngine(ctx, rt, p, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return again, cli.PriorError(err)
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	engine.Prefer(was.Provider)
	now := job.RuntimeOf(engine, restore.Plan{Solver: solverOf(item)}, 1, cli.Version())
	if !was.Equal(now) || out.passport.Batch != 1 {
		fmt.Fprintf(stderr, "ddiff: note: made by %s in a batch of %d, replayed by %s alone\n", cli.Printable(describe(was)), out.passport.Batch, describe(now))
	}
	result, err := job.Recompute(ctx, engine, manifest.Files{}, in.item, in.stored, own...)
	if err != nil {
		return again, fmt.Errorf("replay %s: %w", out.File, err)
	}
	again.Recomputed, again.stored = result, in.stored != nil
	again.warn(out.passport.Warnings, stderr)
	return again, nil
}

// warn prints the warnings that a passport lacks, as one of a version with fewer checks does. Arrays do not say what files say, and restore looks otherwise at a result
// with changed settings.
func (again replayed) warn(before []item.Warning, stderr io.Writer) {
	for _, w := range again.Warnings {
		had := func(b item.Warning) bool { return b.Code == w.Code || b.Code == photograph.WarnChanged }
		if !again.stored && !slices.ContainsFunc(before, had) {
			fmt.Fprintf(stderr, "ddiff: note: a warning that the passport lacks: %s\n", cli.Printable(w.Text))
		}
	}
}

// solverOf returns the solver settings of an item, empty if they are invalid.
func solverOf(item item.Item) method.Settings {
	var s method.Settings
	if err := json.Unmarshal(item.Solver, &s); err != nil {
		return method.Settings{}
	}
	return s
}

// describe names the program, the runtime and the device of a result.
func describe(r item.Runtime) string {
	text := fmt.Sprintf("ddiff %s, ONNX Runtime %s on %s", r.Version, r.Library, r.Provider)
	if r.Device != "" {
		text += " (" + r.Device + ")"
	}
	if version := r.Options[onnxruntime.SettingOpenVINO]; version != "" {
		text += " " + version
	}
	if r.Form != "" {
		text += ", form " + r.Form
	}
	if r.Threads > 0 {
		text += fmt.Sprintf(", threads=%d", r.Threads)
	}
	return text
}

// compare prints the differences between the new image and the old one.
func (again replayed) compare(out *output, stdout io.Writer) error {
	largest, err := levels(out.image, again.Image)
	if err != nil {
		return err
	}
	verdict := "different"
	switch {
	case largest == 0 && (out.bits <= 8 || equal16(out.image, again.Image)):
		verdict = "bit-equal"
	case largest <= tolerance:
		verdict = "within-tolerance"
	}
	measurement := "different"
	switch {
	case again.stored:
		measurement = "stored"
	case again.Artifacts[item.FileData] == out.passport.Data[item.FileData]:
		measurement = "bit-equal"
	}
	delta := "none"
	if change := again.Metrics.Of(metric.NamePSNR) - out.passport.Metrics.Of(metric.NamePSNR); !math.IsNaN(change) {
		delta = strconv.FormatFloat(change, 'g', 3, 64)
	}
	fmt.Fprintf(stdout, "replay=%s max_levels=%d measurement=%s psnr_delta=%s\n", verdict, largest, measurement, delta)
	switch {
	case len(out.Problems) > 0:
		return fmt.Errorf("%w: %s does not match its passport", cli.ErrMismatch, out.File)
	case largest > tolerance && out.reencoded():
		return fmt.Errorf("%w: the replay of %s differs by up to %d grey levels: a file with lossy compression, transparency or a range of numbers "+
			"has other pixels than were computed; replay the restored.png of --results", cli.ErrMismatch, out.File, largest)
	case largest > tolerance:
		return fmt.Errorf("%w: the replay of %s differs by up to %d grey levels", cli.ErrMismatch, out.File, largest)
	}
	return nil
}

// reencoded reports whether restore may have written other pixels than were computed. The image of an item has those that were.
func (o *output) reencoded() bool {
	if filepath.Base(o.File) == item.FileRestored {
		return false
	}
	transparent := slices.ContainsFunc(o.passport.Warnings, func(w item.Warning) bool { return w.Code == photograph.WarnAlpha })
	return o.lossy || transparent || o.passport.Item.MeasurementRange != nil
}

// equal16 reports whether two images of equal size have equal samples of 16 bits.
func equal16(a, b *raster.Image) bool {
	a, errA := raster.InChannels(a, 3)
	b, errB := raster.InChannels(b, 3)
	return errA == nil && errB == nil && slices.EqualFunc(a.Pix, b.Pix, func(v, w float32) bool { return raster.To16(v) == raster.To16(w) })
}

// levels returns the largest difference of two images in 8-bit grey levels.
func levels(a, b *raster.Image) (int, error) {
	x, errX := raster.RGB8(a)
	y, errY := raster.RGB8(b)
	if err := errors.Join(errX, errY); err != nil {
		return 0, err
	}
	if a.Width != b.Width || len(x) != len(y) {
		return 0, fmt.Errorf("the images have %d×%d and %d×%d pixels", a.Width, a.Height, b.Width, b.Height)
	}
	largest := 0
	for i := range x {
		largest = max(largest, int(x[i])-int(y[i]), int(y[i])-int(x[i]))
	}
	return largest, nil
}

// inputs are the sources of an image that is restored again.
type inputs struct {
	// item is the item of the passport, with the paths at which its sources were found.
	item item.Item
	// stored holds the arrays beside the image. They replace the sources if one is missing; reason names it.
	stored *job.Stored
	reason string
}

// findInputs finds the sources of the item at their old paths or below root, or else reads the arrays beside the
// image.
func findInputs(ctx context.Context, out *output, root string) (inputs, error) {
	in := inputs{item: out.passport.Item}
	places := map[string]**item.Source{
		"image": &in.item.Image, "measurement": &in.item.Measurement, "mask": &in.item.Mask, "kernel": &in.item.Kernel,
	}
	all := in.item.Sources()
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		path, err := locate(*all[name], root)
		if err != nil {
			missing = append(missing, err.Error())
		}
		*places[name] = &item.Source{Path: path, SHA256: all[name].SHA256}
	}
	if len(missing) == 0 {
		return in, nil
	}
	if cli.IsPreview(&out.passport.Item) {
		return in, cli.Usage(fmt.Errorf("replay %s: it is a preview of %s, whose middle was a temporary file; run its ddiff restore --preview again, or replay the whole restored picture",
			out.File, out.passport.Item.Name))
	}
	in.reason, in.stored = strings.Join(missing, ", "), &job.Stored{}
	for _, name := range slices.Sorted(maps.Keys(out.passport.Data)) {
		data := &in.stored.Measurement
		if name != item.FileData {
			if data = &in.stored.Kernel; name == photograph.Mask+".npy" {
				data = &in.stored.Mask
			}
			if in.item.Mask == nil && in.item.Kernel == nil {
				continue // the operator draws it again from the seed
			}
		}
		var err error
		if *data, err = readArray(ctx, out, name); err != nil {
			return in, cli.Usage(fmt.Errorf("replay %s: %s, and %w; give the directory of the source with --root", out.File, in.reason, err))
		}
	}
	return in, nil
}

// readArray reads an array beside the image and checks its digest.
func readArray(ctx context.Context, out *output, name string) ([]byte, error) {
	path := out.beside(filepath.Base(name))
	data, err := out.from.get(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s does not exist", out.from.show(path))
	}
	if err == nil && regular.SHA256(data) != out.passport.Data[name] {
		return nil, fmt.Errorf("%s was changed", out.from.show(path))
	}
	return data, err
}

// places lists the paths at which a source may be: its path, and below root any end of its path.
func places(path, root string) []string {
	paths := []string{path}
	if root == "" {
		return paths
	}
	for rest := filepath.ToSlash(path); rest != ""; _, rest, _ = strings.Cut(rest, "/") {
		if filepath.IsLocal(rest) {
			paths = append(paths, filepath.Join(root, rest))
		}
	}
	return paths
}

// locate finds the bytes of a source: at its path, or below root at any end of its path.
func locate(s item.Source, root string) (string, error) {
	reason := "is gone"
	for _, path := range places(s.Path, root) {
		sum, err := regular.Digest(path, manifest.MaxFileBytes)
		if err != nil {
			continue
		}
		if sum == s.SHA256 {
			return path, nil
		}
		reason = "has changed"
	}
	if manifest.IsAddress(s.Path) {
		reason = "is on a server and its query, which may be a signature, is not recorded; download it and give its directory with --root"
	}
	return "", fmt.Errorf("%s %s", s.Public(), reason)
}

// findOperator finds the operator file of an item at its old path or below root.
func findOperator(from item.Source, root string) (*operator.File, error) {
	reason := fs.ErrNotExist
	for _, path := range places(from.Path, root) {
		f, err := campaign.OpenOperator(path)
		if err == nil && f.SHA256 == from.SHA256 {
			return f, nil
		}
		if err == nil {
			reason = fmt.Errorf("the SHA-256 of %s is %.12s", path, f.SHA256)
		}
	}
	return nil, fmt.Errorf("%w %s: want the file with the SHA-256 %.12s: %w; give its directory with --root", cli.ErrOperator, from.Public(), from.SHA256, reason)
}
