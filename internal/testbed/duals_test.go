package testbed

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/gonum/mat"

	"ddiff/coordinator/report/chart"
	"ddiff/restore/method"
	"ddiff/restore/noise"
	"ddiff/restore/onnx/install"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
	"ddiff/restore/prior"
	"ddiff/restore/prior/linear"
	"ddiff/restore/solver"
)

// dualReadings are the readings of the dual variable of latent_ddiff, with latent_dc for comparison.
func dualReadings() []dualReading {
	return []dualReading{{"pixel", "pixel_dc", "pixel"}, {"latent", "pixel_dc", "latent"}, {"tangent", "pixel_dc", "tangent"}, {"latent_dc", "latent_dc", "pixel"}}
}

type dualReading struct{ name, mode, dual string }

// dualPanel is the outcome for one operator and one autoencoder, by reading and step: the medians over the trials of the
// distance of z̃ from the posterior mean, relative to its length, and of the primal norm.
type dualPanel struct {
	title            string
	exact            bool
	distance, primal map[string][]float64
}

const (
	dualSteps = 200
	dualSigma = 0.05
	// dualRounding is the spacing of the latents of the imperfect autoencoder. Their standard deviation is 0.2 to 0.7.
	dualRounding = 0.3
)

// duals is the command behind `make duals`; TestDuals runs a small form. It compares the readings of the dual variable of
// latent_ddiff on problems whose posterior mean is known: Gaussian latents, a linear operator, and an autoencoder that is
// linear, or linear with rounded latents, as a quantiser has them. It prints the figures of
// docs/data/duals.csv and draws docs/duals.svg.
func duals(ctx context.Context, args []string) error {
	root, err := ModuleRoot(ctx)
	if err != nil {
		return err
	}
	flags := flag.NewFlagSet("duals", flag.ExitOnError)
	trials := flags.Int("trials", 20, "problems per operator and autoencoder")
	if err := flags.Parse(args); err != nil {
		return err
	}
	library, err := install.Locate(install.LocateOptions{})
	if err != nil {
		return err
	}
	rt, err := onnxruntime.Open(onnxruntime.Config{Library: library.Path, Provider: onnxruntime.ProviderCPU})
	if err != nil {
		return err
	}
	defer rt.Close()
	panels, err := measureDuals(ctx, rt, *trials)
	if err != nil {
		return err
	}
	writeDuals(os.Stdout, panels)
	chart, err := drawDuals(panels).SVG()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "docs", "duals.svg"), chart, 0o644)
}

// openStage writes a bundle to a temporary folder and reads it.
func openStage(stage linear.Stage, variance []float32) (*prior.Prior, error) {
	dir, err := os.MkdirTemp("", "duals")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := stage.Write(dir, variance); err != nil {
		return nil, err
	}
	return prior.Open(dir)
}

// measureDuals makes the panels of both autoencoders and two operators.
func measureDuals(ctx context.Context, rt *onnxruntime.Runtime, trials int) ([]dualPanel, error) {
	image, latent := operator.Shape{Channels: 1, Height: 16, Width: 16}, operator.Shape{Channels: 1, Height: 8, Width: 8}
	variance := make([]float32, latent.Size())
	for i := range variance {
		variance[i] = 0.05 + 0.45*float32(i)/float32(len(variance)-1)
	}
	var out []dualPanel
	for _, step := range []float64{0, dualRounding} {
		stage := linear.New(image, latent, 1)
		stage.Step = step
		p, err := openStage(stage, variance)
		if err != nil {
			return nil, err
		}
		for _, task := range []string{operator.GaussianDeblur, operator.InpaintRandom} {
			op, err := operator.Builtin().New(task, nil, image)
			if err != nil {
				return nil, err
			}
			m := dualMeasurement{rt: rt, prior: p, stage: stage, op: op, variance: variance}
			panel := dualPanel{title: task + ", exact autoencoder", exact: step == 0, distance: map[string][]float64{}, primal: map[string][]float64{}}
			if step > 0 {
				panel.title = task + ", rounded latents"
			}
			for _, r := range dualReadings() {
				if err := m.run(ctx, &panel, r, trials); err != nil {
					return nil, fmt.Errorf("%s, %s: %w", panel.title, r.name, err)
				}
			}
			out = append(out, panel)
		}
	}
	return out, nil
}

// dualMeasurement solves the problems of one panel.
type dualMeasurement struct {
	rt       *onnxruntime.Runtime
	prior    *prior.Prior
	stage    linear.Stage
	op       *operator.Operator
	variance []float32
}

// run solves all problems with one reading.
func (m dualMeasurement) run(ctx context.Context, panel *dualPanel, r dualReading, trials int) error {
	word, number := parameter.Word, parameter.Number
	settings, err := method.Builtin().Resolve(method.Request{Method: "latent_ddiff", Preset: "ffhq", Task: m.op.Task, Steps: dualSteps,
		Values: map[string]parameter.Value{
			"mode": word(r.mode), "dual": word(r.dual), "gamma0": number(0.1), "a": number(1), "b": number(1), "t0": number(300),
			"sigma_rule": word("ddpm"), "gradient": word(method.GradientSquared),
		}}, m.prior.Schedule.Steps())
	if err != nil {
		return err
	}
	run, err := method.NewRun(method.LatentDDiff(), settings, m.prior, m.op)
	if err != nil {
		return err
	}
	s, err := solver.New(m.rt, run, 1, solver.Build{Form: solver.FormSingle})
	if err != nil {
		return err
	}
	defer s.Close()
	f, err := operator.NewForward(m.rt, m.op)
	if err != nil {
		return err
	}
	defer f.Close()
	distances, primal := make([][]float64, dualSteps), make([][]float64, dualSteps)
	for i := range trials {
		problem, mean, err := m.problem(ctx, f, noise.Key{uint32(i + 1), 14})
		if err != nil {
			return err
		}
		states, curves := []solver.State{s.Start(problem.Key)}, make([]solver.Curves, 1)
		if err := s.Resume(ctx, []solver.Problem{problem}, states, curves, func(step int) error {
			k := slices.IndexFunc(states[0].Tensors, func(t solver.Tensor) bool { return t.Name == "z_before" })
			off, length := 0.0, 0.0
			for j, z := range states[0].Tensors[k].Data {
				off, length = off+(float64(z)-mean[j])*(float64(z)-mean[j]), length+mean[j]*mean[j]
			}
			distances[step-1] = append(distances[step-1], math.Sqrt(off/length))
			return nil
		}); err != nil {
			return err
		}
		for step, v := range curves[0].Curve("primal_norm") {
			primal[step] = append(primal[step], v)
		}
	}
	for step := range distances {
		panel.distance[r.name] = append(panel.distance[r.name], middle(distances[step]))
		panel.primal[r.name] = append(panel.primal[r.name], middle(primal[step]))
	}
	return nil
}

// problem draws latents, measures their image and solves for the posterior mean of the latents.
func (m dualMeasurement) problem(ctx context.Context, f *operator.Forward, key noise.Key) (solver.Problem, []float64, error) {
	draw, err := m.op.Encode(m.op.Draw(key))
	if err != nil {
		return solver.Problem{}, nil, err
	}
	d := len(m.variance)
	z := make([]float32, d)
	noise.Normal(z, key, noise.Start, 9, 1)
	x := make([]float32, m.op.Image.Size())
	columns := mat.NewDense(m.op.MeasurementSize(), d, nil) // A·D
	for j := range d {
		column := make([]float32, len(x))
		for i := range x {
			column[i] = float32(m.stage.Decode[i][j])
			x[i] += column[i] * z[j] * float32(math.Sqrt(float64(m.variance[j])))
		}
		applied, err := f.Apply(ctx, column, draw)
		if err != nil {
			return solver.Problem{}, nil, err
		}
		for i, v := range applied {
			columns.Set(i, j, float64(v))
		}
	}
	y, err := f.Measure(ctx, x, draw, operator.Noise{Sigma: dualSigma}, key)
	if err != nil {
		return solver.Problem{}, nil, err
	}
	observed := mat.NewVecDense(len(y), nil)
	for i, v := range y {
		observed.SetVec(i, float64(v))
	}
	var left mat.Dense
	var right, mean mat.VecDense
	left.Mul(columns.T(), columns)
	right.MulVec(columns.T(), observed)
	for j, v := range m.variance {
		left.Set(j, j, left.At(j, j)+dualSigma*dualSigma/float64(v))
	}
	if err := mean.SolveVec(&left, &right); err != nil {
		return solver.Problem{}, nil, err
	}
	return solver.Problem{Y: y, Draw: draw, Key: key}, mean.RawVector().Data, nil
}

// middle returns the median.
func middle(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	n := len(values)
	if n == 0 {
		return math.NaN()
	}
	return (values[(n-1)/2] + values[n/2]) / 2
}

// last returns the last value of a reading.
func last(values map[string][]float64, reading string) float64 { return values[reading][dualSteps-1] }

// writeDuals prints a row per panel and reading.
func writeDuals(w io.Writer, panels []dualPanel) {
	fmt.Fprintln(w, "| problem | reading | distance | primal norm |\n|---|---|---|---|")
	for _, p := range panels {
		for _, r := range dualReadings() {
			fmt.Fprintf(w, "| %s | %s | %.3f | %.3f |\n", p.title, r.name, last(p.distance, r.name), last(p.primal, r.name))
		}
	}
}

// drawDuals draws the distances of all panels over the steps, and the primal norms with rounded latents.
func drawDuals(panels []dualPanel) *chart.Chart {
	c := &chart.Chart{
		Title: "Readings of the dual variable of LatentDDiff", Width: chart.TwoColumns, Columns: 2, ShareX: true,
		Description: "Distance of the predicted clean latent from the posterior mean, and the primal norm, over the steps, for two operators and " +
			"two autoencoders.",
	}
	add := func(title, label string, values map[string][]float64) {
		panel := chart.Panel{Title: title, X: chart.Axis{Label: "step"}, Y: chart.Axis{Label: label, Log: true}}
		for _, r := range dualReadings() {
			s := chart.Series{Label: r.name, Kind: chart.Curve}
			for i, d := range values[r.name] {
				s.Points = append(s.Points, chart.At(float64(i+1), d))
			}
			panel.Series = append(panel.Series, s)
		}
		c.Panels = append(c.Panels, panel)
	}
	for _, p := range panels {
		add(p.title, "distance from the mean", p.distance)
	}
	for _, p := range panels {
		if !p.exact {
			add(p.title, "primal norm", p.primal)
		}
	}
	return c
}

// checkDuals returns an error unless the panels show what docs/methods/latent_ddiff.md states.
func checkDuals(panels []dualPanel) error {
	var errs []error
	for _, p := range panels {
		switch {
		case p.exact:
			for _, r := range dualReadings() {
				if v := last(p.primal, r.name); !(v <= 0.01) {
					errs = append(errs, fmt.Errorf("%s, %s: the primal norm is %.3f at the end", p.title, r.name, v))
				}
				if d := last(p.distance, r.name) - last(p.distance, "latent"); r.name != "pixel" && !(math.Abs(d) <= 1e-3) {
					errs = append(errs, fmt.Errorf("%s, %s: %.3f farther than latent", p.title, r.name, d))
				}
			}
		case !(last(p.distance, "pixel") < last(p.distance, "latent") && last(p.distance, "latent") < last(p.distance, "tangent")):
			errs = append(errs, fmt.Errorf("%s: pixel, latent and tangent are not in this order", p.title))
		case !(last(p.primal, "pixel") <= 0.01) || !(last(p.primal, "latent") >= 0.3) || !(last(p.primal, "tangent") >= 0.3):
			errs = append(errs, fmt.Errorf("%s: not pixel alone converges", p.title))
		}
	}
	return errors.Join(errs...)
}
