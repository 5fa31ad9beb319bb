package operator

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"time"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/trial"
)

const (
	// verifySide is the least side in pixels of the images of the call that Verify makes, if the file's sides are free.
	verifySide = 32
	// verifyBatch is the number of images, so that a batch that the graph fixes inside is found.
	verifyBatch = 2
	// verifyMemory limits the memory of the call, in bytes, by that of all values that the file and its gradient compute, and of the work spaces.
	verifyMemory = 2 << 30
	// verifyTime limits the time of the calls, which take milliseconds for convolutions.
	verifyTime = time.Minute
)

// Verify runs A and its gradient twice, on two small images of noise with the default parameters. Call it before the first use
// of a file. It returns ErrFile if ONNX Runtime cannot run the file, if results have other shapes than the file states, are
// not finite, or depend on the other image or on chance, and if the calls need more than 2 GiB or a minute: strangers submit files. Errors of the
// device, of its memory and of ctx pass through.
//
// It estimates before it runs anything, and the first run on this machine is in a process of its own, see [trial.Run].
func (f *File) Verify(ctx context.Context, rt *onnxruntime.Runtime) error {
	op, err := f.New(f.Smallest(verifySide))
	if err != nil {
		return fmt.Errorf("operator %s: %w", f.Path, err)
	}
	if err := op.CheckMemory(verifyBatch); err != nil {
		return err
	}
	if err := f.first.Run(ctx, rt, trial.File{Kind: "operator", Name: f.Path, SHA256: f.SHA256, Weights: 4 * int64(f.model.Parameters()), Unusable: ErrFile}); err != nil {
		return err
	}
	return f.verifyWithin(ctx, rt, op, verifyTime)
}

// Check is the [trial.Check] of an operator file.
func Check(ctx context.Context, rt *onnxruntime.Runtime, t trial.File) error {
	f, err := Load(t.Name, t.Data)
	if err != nil {
		return err
	}
	return f.Verify(ctx, rt)
}

func (f *File) verifyWithin(ctx context.Context, rt *onnxruntime.Runtime, op *Operator, limit time.Duration) error {
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it has not ended after %v", limit))
	defer cancel()
	err := f.verify(limited, rt, op)
	if limited.Err() != nil && ctx.Err() == nil {
		err = context.Cause(limited)
	}
	if err == nil || onnxruntime.Environmental(ctx, err) {
		return err
	}
	return op.unusable(verifyBatch, err)
}

func (o *Operator) unusable(images int, err error) error {
	return fmt.Errorf("operator %s: %w: it cannot run on %d images of %d×%d: %w", o.Own.Path, ErrFile, images, o.Image.Width, o.Image.Height, err)
}

// CheckMemory returns ErrFile if a call of a file's operator and its gradient for n images needs more than 2 GiB, or memory of unknown size.
func (o *Operator) CheckMemory(n int) error {
	need, err := o.Bytes()
	if need *= float64(n); err == nil && need > verifyMemory {
		err = fmt.Errorf("its values need about %.0f MiB, at most %d MiB are allowed", need/(1<<20), verifyMemory>>20)
	}
	if err != nil {
		return o.unusable(n, err)
	}
	return nil
}

func (f *File) verify(ctx context.Context, rt *onnxruntime.Runtime, op *Operator) error {
	fw, err := newForward(rt, op, verifyBatch, true)
	if err != nil {
		return err
	}
	defer fw.Close()
	key := noise.NewKey(sha256.Sum256([]byte("verify operator")))
	for i, t := range fw.inputs {
		noise.Normal(t.F32, key, noise.Operator, uint32(i), 0.4)
	}
	if err := fw.session.Run(ctx, fw.inputs, fw.outputs); err != nil {
		return err
	}
	names := []string{"y", "the gradient"}
	first := make([][]float32, len(names)) // image's
	for i, name := range names {
		values := fw.outputs[i].F32
		if at, ok := raster.Finite(values); !ok {
			return fmt.Errorf("value %d of %s is %v", at, name, values[at])
		}
		first[i] = slices.Clone(values[:len(values)/verifyBatch])
	}
	for _, t := range fw.inputs {
		for j := len(t.F32) / verifyBatch; j < len(t.F32); j++ {
			t.F32[j] += 0.5
		}
	}
	if err := fw.session.Run(ctx, fw.inputs, fw.outputs); err != nil {
		return err
	}
	for i, name := range names {
		if !alike(fw.outputs[i].F32[:len(first[i])], first[i]) {
			return fmt.Errorf("%s of an image depends on the others in its batch, or on chance; "+
				"reduce over the dimensions of one image, or export x with a batch of 1, and draw no random numbers", name)
		}
	}
	return nil
}

// alike reports whether values differ by rounding alone.
func alike(got, want []float32) bool {
	largest, most := 0.0, 0.0
	for i, w := range want {
		largest = max(largest, math.Abs(float64(w)))
		most = max(most, math.Abs(float64(got[i]-w))) // NaN stays NaN
	}
	return most <= 1e-4*largest
}
