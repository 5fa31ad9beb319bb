package operator

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"time"

	"ddiff/restore/noise"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/raster"
)

const (
	// verifySide is the least side in pixels of the images of the call that Verify makes, if the file's sides are free.
	verifySide = 32
	// verifyBatch is the number of images, so that a batch that the graph fixes inside is found.
	verifyBatch = 2
	// verifyMemory limits the memory of the call, in bytes, by the size of all values that the file and its gradient compute.
	verifyMemory = 2 << 30
	// verifyTime limits the time of the calls, which take milliseconds for convolutions.
	verifyTime = time.Minute
	// valueBytes is the memory of a value in float32: reverse mode keeps a gradient beside it.
	valueBytes = 2 * 4
)

// Verify runs A and its gradient twice, on two small images of noise with the default parameters. Call it before the first use
// of a file. It returns ErrFile if ONNX Runtime cannot run the file, if results have other shapes than the file states, are
// not finite, or depend on the other image or on chance, and if the calls need more than 2 GiB or a minute: strangers submit files. Errors of the
// device, of its memory and of ctx pass through.
func (f *File) Verify(ctx context.Context, rt *onnxruntime.Runtime) error {
	return f.verifyWithin(ctx, rt, verifyTime)
}

func (f *File) verifyWithin(ctx context.Context, rt *onnxruntime.Runtime, limit time.Duration) error {
	op, err := f.New(f.Smallest(verifySide))
	if err != nil {
		return fmt.Errorf("operator %s: %w", f.Path, err)
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it has not ended after %v", limit))
	defer cancel()
	if err = f.checkMemory(op.Image); err == nil {
		err = f.verify(limited, rt, op)
	}
	if limited.Err() != nil && ctx.Err() == nil {
		err = context.Cause(limited)
	}
	if err == nil || onnxruntime.Environmental(ctx, err) {
		return err
	}
	return fmt.Errorf("operator %s: %w: it cannot run on %d images of %d×%d: %w", f.Path, ErrFile, verifyBatch, op.Image.Width, op.Image.Height, err)
}

// checkMemory estimates the memory of verify from the shapes of all values.
func (f *File) checkMemory(image Shape) error {
	if need := valueBytes * verifyBatch * f.Values(image); need > verifyMemory {
		return fmt.Errorf("its values need about %.0f MiB, at most %d MiB are allowed", need/(1<<20), verifyMemory>>20)
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
