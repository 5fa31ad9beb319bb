package prior

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"ddiff/restore/noise"
	"ddiff/restore/onnx/modelfile"
	"ddiff/restore/onnx/onnxruntime"
)

// rewriteTolerance is the largest difference between a rewritten network and its file, as a share of the largest
// prediction. Rounding stays far below it, a rewriting that does not fit the graph far above.
const rewriteTolerance = 5e-3

// verifyLimit is the longest duration of a call of the network.
const verifyLimit = 20 * time.Second

// errSlow: a call of the network exceeds verifyLimit.
var errSlow = fmt.Errorf("a call takes more than %v", verifyLimit)

// verifySide is the least side in pixels of the images that Verify uses.
const verifySide = 32

// Verification is the result of [Prior.Verify].
type Verification struct {
	// Rewritten is the number of group normalisations that Load rewrote.
	Rewritten int
	// Difference is the largest difference between the predictions of a rewritten network and of the file, as a share of the largest
	// prediction; 0 if there is none.
	Difference float64
	// Reason is empty if the rewritten network agrees with the file. Otherwise the prior uses the network as it is in the
	// file from now on.
	Reason string
	// Alternative is empty if the alternative of the runtime can run the network, or if there is none.
	Alternative string
}

// Verify runs the network once on noise, and once more as it is in the file if Load has rewritten it, for OpenVINO in a form of its own: the
// prior uses the file's graph if they differ by more than 5e-3 of the largest prediction. Call it before the first Predict. The bundled prior is not run.
//
// It also runs the encoder, the quantizer and the decoder of a latent prior once; ErrBundle: a part cannot run, or its result
// has another shape than the card states or is not finite.
//
// It returns ErrGraph if ONNX Runtime cannot run the file, or if the file's predictions have another shape than the
// images or are not finite; errors of the device and of ctx pass through. A network that exceeds the memory of a GPU, or
// 20 s for one call, is used as it is in its file. On the CPU one that exceeds the memory cannot run.
//
// It returns onnxruntime.ErrFallback if the runtime or its alternative is OpenVINO, and predicts other values than the CPU provider.
func (p *Prior) Verify(ctx context.Context, rt *onnxruntime.Runtime) (Verification, error) {
	if p.File == Bundled {
		return Verification{Rewritten: p.rewritten}, nil
	}
	v, err := p.verifyForms(ctx, rt)
	if err != nil {
		return v, err
	}
	v.Alternative, err = p.verifyOpenVINO(ctx, rt)
	return v, err
}

// verifyForms verifies all but the agreement of OpenVINO with the CPU provider.
func (p *Prior) verifyForms(ctx context.Context, rt *onnxruntime.Runtime) (Verification, error) {
	v := Verification{Rewritten: p.rewritten}
	if p.parts != nil {
		if err := p.verifyParts(ctx, rt); err != nil && !undecided(err) {
			return v, err
		}
	}
	var fast [][]float32
	forms := p.forms(rt)
	for _, form := range forms {
		y, err := p.sample(ctx, rt, form)
		if deviceError(ctx, err) && !undecided(err) {
			return v, err
		}
		if err != nil {
			v.Reason = err.Error()
			break
		}
		fast = append(fast, y)
	}
	model, byChannel := p.model, p.byChannel
	p.model, p.byChannel = p.file, p.file
	plain, err := p.sample(ctx, rt, p.file)
	if hostError(ctx, rt, err) {
		return v, fmt.Errorf("prior %s: %w: the network cannot run: %s", p.File, ErrGraph, err.Error()) // not ErrMemory, which is no fault of a file
	}
	if undecided(err) { // the solver, which needs more memory and has a limit of its own, will say so
		v.Reason = "it is not verified: " + err.Error()
		return v, nil
	}
	if err != nil {
		if !deviceError(ctx, err) {
			err = fmt.Errorf("prior %s: %w: the network cannot run: %w", p.File, ErrGraph, err)
		}
		return v, err
	}
	for _, x := range plain {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return v, fmt.Errorf("prior %s: %w: it predicts NaN or infinite values on noise", p.File, ErrGraph)
		}
	}
	if len(forms) == 0 || v.Reason != "" {
		return v, nil
	}
	for _, y := range fast {
		if d := difference(y, plain); d > v.Difference || math.IsNaN(d) {
			v.Difference = d
		}
	}
	if !(v.Difference <= rewriteTolerance) {
		v.Reason = fmt.Sprintf("predictions differ by %.2g of the largest", v.Difference)
		return v, nil
	}
	p.model, p.byChannel = model, byChannel
	return v, nil
}

// difference returns the largest difference of predictions as a share of the largest, or NaN.
func difference(got, want []float32) float64 {
	var largest, most float64
	for i, x := range want {
		largest = max(largest, math.Abs(float64(x)))
		most = max(most, math.Abs(float64(x-got[i])))
	}
	return most / max(largest, math.SmallestNonzeroFloat32)
}

// verifyOpenVINO compares the predictions of OpenVINO with those of the file on the CPU provider. It returns the reason why OpenVINO, as the
// alternative, cannot run the network. If OpenVINO is the runtime, or the CPU provider cannot run it, verifyForms or the solver says so.
func (p *Prior) verifyOpenVINO(ctx context.Context, rt *onnxruntime.Runtime) (reason string, err error) {
	other := cmp.Or(rt.Alternative(), rt)
	if !other.Divides() {
		return "", nil
	}
	cpu, err := rt.With(onnxruntime.Config{Provider: onnxruntime.ProviderCPU, Threads: rt.Threads()})
	if err != nil {
		return "", err
	}
	defer cpu.Close()
	got, err := p.sample(ctx, other, p.byChannel)
	if err != nil {
		return err.Error(), ctx.Err()
	}
	want, err := p.sample(ctx, cpu, p.file)
	if err != nil {
		return "", ctx.Err()
	}
	if d := difference(got, want); !(d <= rewriteTolerance) {
		return "", fmt.Errorf("prior %s: %w: predictions of %s differ by %.2g of the largest from those of the CPU provider; use --device cpu",
			p.File, onnxruntime.ErrFallback, other.Provider(), d)
	}
	return "", nil
}

// forms lists the networks that a runtime uses and that are not those of the file.
func (p *Prior) forms(rt *onnxruntime.Runtime) []*modelfile.Model {
	switch {
	case p.rewritten == 0:
		return nil
	case rt.Divides() || rt.Alternative() != nil:
		return []*modelfile.Model{p.model, p.byChannel}
	}
	return []*modelfile.Model{p.model}
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

// deviceError reports whether err is due to the device or the end of ctx, and not to the network.
func deviceError(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || errors.Is(err, onnxruntime.ErrMemory) || errors.Is(err, onnxruntime.ErrDeviceLost) || errors.Is(err, onnxruntime.ErrFallback))
}

// sample returns the predictions of a form of the network for one batch of fixed noise in the middle of the schedule.
func (p *Prior) sample(ctx context.Context, rt *onnxruntime.Runtime, form *modelfile.Model) ([]float32, error) {
	n, h, w := p.smallest()
	net, err := p.compile(rt, form, n, h, w, onnxruntime.FP32)
	if err != nil {
		return nil, err
	}
	defer net.Close()
	noise.Normal(net.X.F32, noise.NewKey([32]byte([]byte("ddiff prior verify: fixed noise."))), noise.Step, 0, 1)
	net.T.I64[0] = int64(p.Schedule.Steps() / 2)
	ctx, cancel := context.WithTimeoutCause(ctx, verifyLimit, errSlow)
	defer cancel()
	if err := net.Run(ctx); err != nil {
		return nil, err
	}
	return slices.Clone(net.Y.F32), nil
}

// smallest returns the smallest batch of images that the network takes.
func (p *Prior) smallest() (n, h, w int) {
	side := (verifySide + p.Card.MultipleOf - 1) / p.Card.MultipleOf * p.Card.MultipleOf
	n, h, w = 1, side, side
	factor := 1
	if p.Card.Latent != nil {
		factor = p.Card.Latent.Factor
	}
	if d := p.x.Dims; d[0] > 0 {
		n = d[0]
	}
	for i, size := range []*int{&h, &w} {
		if d := p.x.Dims[2+i]; d > 0 {
			*size = d * factor
		}
	}
	return n, h, w
}
