package solver

import (
	"errors"
	"slices"
	"testing"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore/operator"
)

// Runs with the network in other forms have the images of the exported one, also in streams and in tiles: with tables, and around a record, which the
// CPU computes as a call, the same bits.
func TestForms(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles each form of the network: make test-all")
	}
	t.Parallel()
	p, rt := bundled(t), onnxtest.Runtime(t).Threaded(2)
	op := newOperator(t, operator.SuperResolution, operator.Shape{Channels: 3, Height: 32, Width: 32})
	for _, tiles := range []prior.Tiling{{}, {Side: 16, Overlap: 8}} {
		run := newRun(t, p, op, config(t, op.Task, 3))
		must(t, run.Tile(tiles))
		probs := problems(t, op, 2, 0.05)
		want := solve(t, compile(t, rt, run, 2, Build{}), probs)
		for _, form := range []prior.Form{prior.TimeTables, prior.TimeTables.WithGraph(), prior.Exported.WithGraph()} {
			for i, got := range solve(t, compile(t, rt, run, 2, Build{Form: form}), probs) {
				if !slices.Equal(got.X, want[i].X) {
					t.Errorf("%s, tiles of %d: image %d differs by %.2g", form, tiles.Side, i+1, maxAbs(got.X, want[i].X))
				}
			}
		}
	}
	if _, err := New(rt, newRun(t, p, op, config(t, op.Task, 3)), 1, Build{Form: prior.ChannelsLast}); !errors.Is(err, onnxruntime.ErrRuntime) {
		t.Errorf("channels last on the CPU: %v", err)
	}
	if err := (Build{Form: "fast"}).Validate(); !errors.Is(err, ErrConfig) || !errors.Is(err, prior.ErrForm) {
		t.Errorf("an unknown form: %v", err)
	}
}
