package operator

import (
	"context"
	"crypto/sha256"
	"fmt"

	"ddiff/restore/noise"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/raster"
)

const (
	// verifySide is the least side in pixels of the images of the call that Verify makes, if the file's sides are free.
	verifySide = 32
	// verifyBatch is the number of images, so that a batch that the graph fixes inside is found.
	verifyBatch = 2
)

// Verify runs A and its gradient once, on two small images of noise with the default parameters. Call it before the first use
// of a file. It returns ErrFile if ONNX Runtime cannot run the file, or if results have other shapes than the file states or are
// not finite. Errors of the device, of its memory and of ctx pass through.
func (f *File) Verify(ctx context.Context, rt *onnxruntime.Runtime) error {
	op, err := f.New(f.Smallest(verifySide))
	if err != nil {
		return fmt.Errorf("operator %s: %w", f.Path, err)
	}
	if err = f.verify(ctx, rt, op); err == nil || onnxruntime.Environmental(ctx, err) {
		return err
	}
	return fmt.Errorf("operator %s: %w: it cannot run on %d images of %d×%d: %w", f.Path, ErrFile, verifyBatch, op.Image.Width, op.Image.Height, err)
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
	for i, name := range []string{"y", "the gradient"} {
		values := fw.outputs[i].F32
		if at, ok := raster.Finite(values); !ok {
			return fmt.Errorf("value %d of %s is %v", at, name, values[at])
		}
	}
	return nil
}
