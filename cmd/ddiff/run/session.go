package run

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"ddiff/internal/cli"
	"ddiff/internal/cli/campaign"
	"ddiff/internal/lifecycle"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/raster"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/restore/operator"
	restorer "ddiff/restore/picture"
)

// sessionBatch is the default number of pictures of a request that are solved together.
const sessionBatch = 16

func newSessionCommand(c manifest.Catalogue) *cobra.Command {
	s := &session{restoreOptions: restoreOptions{Options: campaign.Options{ComputeOptions: cli.ComputeOptions{Catalogue: c}}}}
	cmd := &cobra.Command{
		Use:   "session",
		Short: "Restore arrays that another program sends",
		Long: "Restore arrays that another program sends on standard input, and write the results to standard output. Models stay loaded\n" +
			"until the input ends. The Python package ddiff speaks to it; docs/python.md describes the frames.",
		Example: "  ddiff session --device cpu <requests >answers",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.format != "" {
				return s.encodeResult(cmd.InOrStdin(), cli.Raw(cmd.OutOrStdout()))
			}
			return s.run(cmd.Context(), cmd.InOrStdin(), cli.Raw(cmd.OutOrStdout()), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.Spec.Prior, "prior", manifest.PriorBundled, "bundled, bundled:base, an ONNX file or the `folder` of a bundle")
	f.IntVar(&s.Spec.Batch, "batch", sessionBatch, "largest `number` of pictures of a request that are solved together")
	f.StringVar(&s.format, "encode", "", "read the PNG file of a result on standard input, and write it in another `format`: jpeg, tiff or webp")
	f.IntVar(&s.quality, "quality", photograph.DefaultQuality, "quality of --encode jpeg, 1 to 100")
	f.BoolVar(&s.unchecked, "unchecked", false, "restore with the stated sigma alone, and return also a result that does not explain its picture")
	s.AddDevice(f, onnxruntime.ProviderAuto)
	s.AddBuild(f)
	s.AddPrecision(f)
	s.Stages.AddMemory(f)
	s.Process.AddLog(f, "off")
	return cmd
}

// session answers requests with one prior on one device.
type session struct {
	restoreOptions
	prior    *prior.Prior
	pictures *restorer.Session
	out      io.Writer
	cancels  sync.Map // cancellations of the requests that are not answered yet, by ID

	request *request // in work
	failed  error    // of its progress
}

// run answers the requests of in until it ends.
func (s *session) run(ctx context.Context, in io.Reader, out, stderr io.Writer) (err error) {
	if s.Spec.Batch < 1 || s.Spec.Batch > maxPictures {
		return cli.Usage(fmt.Errorf("session: --batch %d is out of range, want 1 to %d", s.Spec.Batch, maxPictures))
	}
	if err := s.Stages.CheckMemory(); err != nil {
		return err
	}
	log, err := s.Process.Logger(stderr)
	if err != nil {
		return err
	}
	if s.prior, err = cli.OpenPrior(s.Spec.Prior); err != nil {
		return err
	}
	rt, err := s.Open(log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	return s.serve(ctx, rt, log, in, out)
}

// serve answers the requests with an open prior and runtime.
func (s *session) serve(ctx context.Context, rt *onnxruntime.Runtime, log *slog.Logger, in io.Reader, out io.Writer) (err error) {
	build, err := s.Build()
	if err != nil {
		return err
	}
	cfg := s.sessionConfig(s.prior, build, true, log)
	cfg.Runtime, cfg.Batch, cfg.Progress = rt, s.Spec.Batch, s.report
	if s.pictures, err = restorer.Open(ctx, cfg); err != nil {
		return cli.PriorError(err)
	}
	defer func() { err = errors.Join(err, s.pictures.Close()) }()
	s.out = out
	if err := send(out, answer{Ready: true, Version: cli.Version(), Device: rt.Provider()}, nil, nil); err != nil {
		return err
	}
	requests := make(chan *request)
	// Nobody waits for the reader where the session ends before its input: it may be in a read that does not return.
	reader := lifecycle.Go(ctx, func(ctx context.Context) error {
		defer close(requests)
		return s.read(ctx, in, requests)
	})
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case r, ok := <-requests:
			if !ok {
				<-reader.Done()
				return reader.Err()
			}
			if err := s.answer(ctx, r); err != nil {
				return err
			}
		}
	}
}

// read passes requests on, and carries cancellations out.
func (s *session) read(ctx context.Context, in io.Reader, requests chan<- *request) error {
	f := frames{in: bufio.NewReader(in)}
	for {
		r, err := f.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("session: %w", err)
		}
		if r.err == nil && r.Cancel != 0 {
			if cancel, ok := s.cancels.Load(r.Cancel); ok {
				cancel.(context.CancelFunc)()
			}
			continue
		}
		s.begin(ctx, r)
		select {
		case requests <- r:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// begin lets a request end when it is cancelled.
func (s *session) begin(ctx context.Context, r *request) {
	var cancel context.CancelFunc
	r.ctx, cancel = context.WithCancel(ctx)
	s.cancels.Store(r.ID, cancel)
}

// report sends the progress of the request in work.
func (s *session) report(p restorer.Progress) {
	if s.request.Progress && s.failed == nil && (p.Step > 0 || p.Share > 0) {
		s.failed = send(s.out, answer{ID: s.request.ID, Step: p.Step, Steps: p.Steps, Pictures: p.Pictures}, nil, nil)
	}
}

// answer restores the pictures of a request and sends the results. The error ends the session.
func (s *session) answer(ctx context.Context, r *request) error {
	s.request, s.failed = r, nil
	defer func() {
		if cancel, ok := s.cancels.LoadAndDelete(r.ID); ok {
			cancel.(context.CancelFunc)()
		}
	}()
	end := answer{ID: r.ID, Done: true}
	pictures, err := s.plan(r)
	if err != nil {
		end.Error = cli.Message(err)
		return send(s.out, end, nil, nil)
	}
	for i, res := range s.pictures.Restore(r.ctx, pictures...) {
		if onnxruntime.Unusable(res.Err) {
			return fmt.Errorf("solve: %w", res.Err)
		}
		a := answer{ID: r.ID, Index: i, Result: &res.Result, Curves: res.Curves}
		if res.Err != nil {
			a.Error = cli.Message(res.Err)
		}
		a.States = res.Steps
		if res.Err == nil && r.Pictures[i].Shape == nil {
			if res.PNG, err = withMetadata(res.PNG, pictures[i].Measurement); err != nil {
				a.Error = cli.Message(err)
			}
		}
		if err := cmp.Or(s.failed, send(s.out, a, res.Image, res.PNG, res.States...)); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if r.ctx.Err() != nil {
		end.Error, end.Cancelled = fmt.Sprintf("request %d was cancelled", r.ID), true
	}
	return cmp.Or(s.failed, send(s.out, end, nil, nil))
}

// plan returns the pictures of a request, with settings as ddiff restore has them.
func (s *session) plan(r *request) ([]restorer.Picture, error) {
	if r.err != nil {
		return nil, r.err
	}
	spec := manifest.Default()
	spec.Name, spec.Dataset.Path, spec.Dataset.Measurements = "session", "array", true
	spec.Prior, spec.Dataset.MeasurementRange = s.Spec.Prior, r.Range
	spec.Tasks = []item.Task{{Name: strings.ToLower(r.Task), Params: r.Params}}
	spec.Photons, spec.Steps, spec.Solver, spec.Seed = r.Photons, r.Steps, r.Solver, r.Seed
	spec.Preset, spec.KeepStates = cmp.Or(r.Preset, spec.Preset), r.States
	if r.Sigma != nil {
		spec.Sigma = *r.Sigma
	}
	method := cmp.Or(strings.ToLower(r.Method), autoMethod)
	if method != autoMethod {
		spec.Methods = []string{method}
	}
	o := s.restoreOptions
	if r.Operator != "" {
		if r.Task != "" {
			return nil, errors.New("a request has a task and an operator; send one of them")
		}
		file, err := campaign.OpenOperator(r.Operator)
		if err != nil {
			return nil, err
		}
		spec.Tasks[0].Name, spec.Tasks[0].Operator = manifest.OperatorName(r.Operator), r.Operator
		o.Catalogue = o.Catalogue.WithFiles(spec, map[string]*operator.File{r.Operator: file})
	}
	if err := s.pictures.Use(r.ctx, o.Catalogue.Operators); err != nil {
		return nil, err
	}
	o.Params = slices.Collect(maps.Keys(r.Params)) // of which hasParam reads the names
	masks, err := r.maskFiles()
	if err != nil {
		return nil, err
	}
	kernel, err := r.Kernel.file("kernel", (*array).npy)
	if err != nil {
		return nil, err
	}
	spec.Dataset.Mask, spec.Dataset.Kernel = masks[0].Path, kernel.Path
	spec.Dataset.MaskShows, spec.Dataset.KernelForm = r.MaskShows, r.KernelForm
	if r.Operator == "" {
		spec.Dataset.KernelForm = cmp.Or(r.KernelForm, item.KernelPSF)
	}
	o.keepObserved = r.KeepObserved != nil && *r.KeepObserved
	if err := o.complete(spec, method == autoMethod && r.Preset == "" && len(r.Solver) == 0); err != nil {
		return nil, err
	}
	o.Catalogue.Prior = &s.prior.Description
	if err := spec.ValidateRestorations(o.Catalogue); err != nil {
		return nil, err
	}
	spec.KeepObserved = o.Catalogue.Operators.Known(spec.Tasks[0].Name).KeepsObserved()
	if r.KeepObserved != nil {
		spec.KeepObserved = *r.KeepObserved
	}
	encode, isPicture := (*array).picture, true
	if d := o.Catalogue.Operators.Known(spec.Tasks[0].Name); d.NotPicture || d.Own != nil {
		encode, isPicture = (*array).npy, false
	}
	w := &pictureWriter{restoreOptions: o, spec: spec, cells: spec.Cells()}
	var out []restorer.Picture
	for i := range r.Pictures {
		name := cmp.Or(r.Pictures[i].Path, fmt.Sprintf("array%d", i))
		y, err := r.Pictures[i].file(name, encode)
		if err != nil {
			return nil, fmt.Errorf("picture %d: %w", i, err)
		}
		if isPicture && r.Range == nil && raster.IsNPY(beginningOf(r.Pictures[i].Path)) {
			return nil, fmt.Errorf("picture %d: %s: an array file does not say which values are black and white; give --measurement-range LOW,HIGH, such as -1,1 or 0,1",
				i, r.Pictures[i].Path)
		}
		p := w.pictures(&picture{name: name})[0]
		p.Measurement, p.Mask, p.Kernel = y, masks[i], kernel
		out = append(out, p)
	}
	return out, nil
}

// maskFiles are the masks of the pictures: zero Files for none.
func (r *request) maskFiles() ([]restorer.File, error) {
	out := make([]restorer.File, len(r.Pictures))
	for i := range out {
		one, name := r.Mask, "mask"
		if len(r.Masks) > 0 {
			one, name = &r.Masks[i], fmt.Sprintf("mask%d", i)
		}
		var err error
		if out[i], err = one.file(name, (*array).npy); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, nil
}

// file is the file of an array: its path, its bytes, or the file that encode makes of its values. Of no array it is the zero File.
func (a *array) file(name string, encode func(*array) ([]byte, error)) (restorer.File, error) {
	if a == nil {
		return restorer.File{}, nil
	}
	switch {
	case a.Path != "":
		return restorer.File{Path: a.Path}, nil
	case a.File > 0:
		return restorer.File{Path: name, Data: a.values}, nil
	}
	data, err := encode(a)
	return restorer.File{Path: name, Data: data}, err
}
