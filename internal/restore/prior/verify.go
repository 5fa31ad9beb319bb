package prior

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/trial"
)

// openVINOTolerance is the largest difference of OpenVINO's predictions from those of the CPU provider, see difference. Rounding stays far below it, a rewriting that does not fit the graph far above.
const openVINOTolerance = 5e-3

// verifyLimit is the longest duration of a call of the network.
const verifyLimit = 20 * time.Second

// errHost: the smallest batch needs more memory than this machine has.
var errHost = errors.New("the network cannot run")

// errSlow: a call of the network exceeds verifyLimit.
var errSlow = fmt.Errorf("a call takes more than %v", verifyLimit)

// verifySide is the least side in pixels of the images that Verify uses.
const verifySide = 32

// Verification is the result of [Prior.Verify].
type Verification struct {
	// Unfused is the reason why OpenVINO computes the network as it is in the file from now on, and not rewritten; else empty.
	Unfused string
	// CPU is the reason why the CPU provider computes the network, although the runtime has OpenVINO as its alternative; else empty.
	CPU string
	// Doubt is the reason why the card is probably wrong, see [Doubt]; else empty.
	Doubt string
}

// Verify runs the network once on noise. Call it before the first Predict. The bundled prior is not run. The first run on this machine of a file that
// is not the project's is in a process of its own, see [trial.First.Run].
//
// It also runs the encoder, the quantizer and the decoder of a latent prior once; ErrBundle: a part cannot run, or its result
// has another shape than the card states or is not finite.
//
// It also denoises a small picture, see [Prior.Fits].
//
// It returns ErrGraph if ONNX Runtime cannot run the file, or if the file's predictions have another shape than the
// images or are not finite; errors of the device and of ctx pass through. On a GPU, a network that exceeds the memory, or
// 20 s for one call, is left to the solver. On the CPU one that exceeds the memory cannot run.
//
// If the runtime or its alternative is OpenVINO, it also compares OpenVINO's predictions of the rewritten network, and if they differ by
// more than 5e-3 of the largest one also those of the file, with those of the CPU provider. onnxruntime.ErrFallback: OpenVINO is the
// runtime, and both differ.
func (p *Prior) Verify(ctx context.Context, rt *onnxruntime.Runtime) (v Verification, err error) {
	if p.File == Bundled {
		return v, nil
	}
	if Own()[p.SHA256] == "" {
		weights := 4 * int64(p.Parameters())
		if err := p.first.Run(ctx, rt, trial.File{Kind: "prior", Name: p.File, SHA256: p.SHA256, Weights: weights, Unusable: ErrGraph}); err != nil {
			return v, err
		}
	}
	if p.parts != nil {
		if err := p.verifyParts(ctx, rt); err != nil && !undecided(err) {
			return v, err
		}
	}
	base, other := rt, rt.Alternative()
	if rt.Divides() {
		if base, err = rt.With(onnxruntime.Config{Provider: onnxruntime.ProviderCPU, Threads: rt.Threads()}); err != nil {
			return v, err
		}
		defer base.Close()
		other = rt
	}
	want, err := p.sample(ctx, base, p.file, func(ctx context.Context, net *Network) error {
		if p.Card.Continuous() { // its card has no neighbours
			return nil
		}
		fits, err := p.Fits(ctx, net)
		v.Doubt = Doubt(fits)
		return err
	})
	if hostError(ctx, base, err) {
		return v, fmt.Errorf("prior %s: %w: %w: %s", p.File, ErrGraph, errHost, err.Error()) // not ErrMemory, which is no fault of a file
	}
	if undecided(err) { // the solver, which needs more memory and has a limit of its own, will say so
		return v, nil
	}
	if err != nil {
		if !onnxruntime.Environmental(ctx, err) {
			err = fmt.Errorf("prior %s: %w: the network cannot run: %w", p.File, ErrGraph, err)
		}
		return v, err
	}
	if !finite(want) {
		return v, fmt.Errorf("prior %s: %w: it predicts NaN or infinite values on noise", p.File, ErrGraph)
	}
	if other == nil {
		return v, nil
	}
	if err = p.agree(ctx, other, p.fused(), want); err == nil || ctx.Err() != nil {
		return v, ctx.Err()
	}
	v.Unfused, p.fused = err.Error(), func() *modelfile.Model { return p.file }
	if err = p.agree(ctx, other, p.file, want); err == nil || ctx.Err() != nil {
		return v, ctx.Err()
	}
	if other == rt {
		return v, err
	}
	v.CPU = err.Error()
	return v, nil
}

// Check is the [trial.Check] of a prior.
func Check(ctx context.Context, rt *onnxruntime.Runtime, f trial.File) error {
	p, err := load(f.Name, f.Data, f.Dir)
	if err != nil {
		return err
	}
	if _, err = p.Verify(ctx, rt); errors.Is(err, errHost) {
		return onnxruntime.ErrMemory
	}
	return err
}

// agree returns an error if OpenVINO cannot run a form of the network, or predicts other values than the CPU provider.
func (p *Prior) agree(ctx context.Context, openVINO *onnxruntime.Runtime, form *modelfile.Model, want []float32) error {
	got, err := p.sample(ctx, openVINO, form, nil)
	if err != nil {
		return err
	}
	if d := difference(got, want); !(d <= openVINOTolerance) {
		return fmt.Errorf("prior %s: %w: predictions of %s differ by %.2g of the largest from those of the CPU provider; use --device cpu",
			p.File, onnxruntime.ErrFallback, openVINO.Provider(), d)
	}
	return nil
}

// finite reports whether all values are finite.
func finite(x []float32) bool {
	return !slices.ContainsFunc(x, func(v float32) bool { return v != v || math.IsInf(float64(v), 0) })
}

// difference returns the largest difference of predictions as a share of the largest, which counts as at least 1, as white does: float16 rounds a prediction of
// plain grey with the digits of the image that the network gets. NaN stays NaN.
func difference(got, want []float32) float64 {
	largest, most := 1.0, 0.0
	for i, x := range want {
		largest = max(largest, math.Abs(float64(x)))
		most = max(most, math.Abs(float64(x-got[i])))
	}
	return most / largest
}

// undecided reports whether a network could not be run for want of memory or time.
func undecided(err error) bool {
	return errors.Is(err, onnxruntime.ErrMemory) || errors.Is(err, errSlow)
}

// hostError reports whether the smallest batch lacks memory on the CPU: no machine has what such a network requests. On a GPU
// another process may use the memory. The message, which may have names of the file, decides nothing more on the CPU.
func hostError(ctx context.Context, rt *onnxruntime.Runtime, err error) bool {
	host := rt.Provider() == onnxruntime.ProviderCPU || rt.Provider() == onnxruntime.ProviderOpenVINO
	return host && ctx.Err() == nil && (errors.Is(err, onnxruntime.ErrMemory) || errors.Is(err, onnxruntime.ErrDeviceLost))
}

// sample returns the predictions of a form of the network for one batch of fixed noise in the middle of the schedule. It calls more with the network, if
// not nil, of which a lack of memory or time is no error.
func (p *Prior) sample(ctx context.Context, rt *onnxruntime.Runtime, form *modelfile.Model, more func(ctx context.Context, net *Network) error) ([]float32, error) {
	n, h, w := p.smallest()
	net, err := p.compile(rt, form, n, h, w, onnxruntime.FP32)
	if err != nil {
		return nil, err
	}
	defer net.Close()
	noise.Normal(net.X.F32, fixedNoise(), noise.Step, 0, 1)
	net.T.I64[0] = int64(p.Schedule.Steps() / 2)
	ctx, cancel := context.WithTimeoutCause(ctx, verifyLimit, errSlow)
	defer cancel()
	if err := net.Run(ctx); err != nil {
		return nil, err
	}
	got := slices.Clone(net.Y.F32)
	if more != nil && finite(got) {
		if err := more(ctx, net); err != nil && !undecided(err) {
			return nil, err
		}
	}
	return got, nil
}

// smallest returns the smallest batch of images that the network takes.
func (p *Prior) smallest() (n, h, w int) {
	side := (verifySide + p.Card.MultipleOf - 1) / p.Card.MultipleOf * p.Card.MultipleOf
	n, h, w = 1, side, side
	if d := p.x.Dims; d[0] > 0 {
		n = d[0]
	}
	for i, size := range []*int{&h, &w} {
		if d := p.x.Dims[2+i]; d > 0 {
			*size = d * p.factor()
		}
	}
	return n, h, w
}
