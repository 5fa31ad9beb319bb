package operator

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"ddiff/restore/noise"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/raster"
)

const (
	// verifyLimit is the longest duration of the call that Verify makes.
	verifyLimit = 20 * time.Second
	// verifySide is the least side in pixels of the images of this call, if the file's sides are free.
	verifySide = 32
	// verifyBatch is the number of images, so that a batch that the graph fixes inside is found.
	verifyBatch = 2
)

// ErrUnverified: a file was not verified, because its operator is slow. It may be used.
var ErrUnverified = errors.New("not verified")

// Verify runs A and its gradient once, on two small images of noise with the default parameters. Call it before the first use
// of a file. It returns ErrFile if ONNX Runtime cannot run the file, if results have other shapes than the file states or are
// not finite, and ErrUnverified if the call takes more than 20 s. Errors of the device, of its memory and of ctx pass through.
func (f *File) Verify(ctx context.Context, rt *onnxruntime.Runtime) error {
	return f.verifyWithin(ctx, rt, verifyLimit)
}

func (f *File) verifyWithin(ctx context.Context, rt *onnxruntime.Runtime, limit time.Duration) error {
	op, err := f.New(f.Smallest(verifySide))
	if err != nil {
		return fmt.Errorf("operator %s: %w", f.Path, err)
	}
	err = f.verify(ctx, rt, op, limit)
	device := ctx.Err() != nil || errors.Is(err, onnxruntime.ErrMemory) || errors.Is(err, onnxruntime.ErrDeviceLost) || errors.Is(err, onnxruntime.ErrFallback)
	switch {
	case err == nil || device:
		return err
	case errors.Is(err, ErrUnverified):
		return fmt.Errorf("operator %s: %w", f.Path, err)
	}
	return fmt.Errorf("operator %s: %w: it cannot run on %d images of %d×%d: %w", f.Path, ErrFile, verifyBatch, op.Image.Width, op.Image.Height, err)
}

func (f *File) verify(ctx context.Context, rt *onnxruntime.Runtime, op *Operator, limit time.Duration) error {
	fw, err := newForward(rt, op, verifyBatch, true)
	if err != nil {
		return err
	}
	defer fw.Close()
	key := noise.NewKey(sha256.Sum256([]byte("verify operator")))
	for i, t := range fw.inputs {
		noise.Normal(t.F32, key, noise.Operator, uint32(i), 0.4)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: a call takes more than %v", ErrUnverified, limit))
	defer cancel()
	if err := fw.session.Run(ctx, fw.inputs, fw.outputs); err != nil {
		return err
	}
	for i, name := range []string{"y", "the gradient"} {
		values := fw.outputs[i].F32
		if at, ok := raster.Finite(values); !ok {
			return fmt.Errorf("value %d of %s is %v", at, name, values[at])
		}
	}
	return nil
}
