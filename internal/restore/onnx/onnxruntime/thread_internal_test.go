package onnxruntime

import (
	"context"
	"testing"
)

// calls is a model that notes which calls of it run alone in the process.
type calls struct{ alone []bool }

func (c *calls) run(context.Context, []*Tensor, []*Tensor) error {
	shared := recording.TryRLock()
	if shared {
		recording.RUnlock()
	}
	c.alone = append(c.alone, !shared)
	return nil
}

func (*calls) close() error { return nil }

// While the work of a model is recorded, no other thread of the process uses a GPU.
func TestRecordsAlone(t *testing.T) {
	worker := startThread()
	defer close(worker.work)
	r := &Runtime{device: Device{Provider: ProviderCPU}, thread: worker}
	for _, c := range []struct {
		plain *Session
		want  []bool
	}{{nil, []bool{false, false, false}}, {&Session{}, []bool{true, true, false}}} {
		model := &calls{}
		s := &Session{runtime: r, program: model, plain: c.plain}
		for i, want := range c.want {
			if err := s.Run(t.Context(), nil, nil); err != nil {
				t.Fatal(err)
			}
			if model.alone[i] != want {
				t.Errorf("with a record %v, call %d: alone is %v", c.plain != nil, i, model.alone[i])
			}
		}
	}
}
