package solver

import (
	"context"
	"fmt"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/raster"
	"ddiff/restore/method"
	"ddiff/restore/onnx"
)

// Answers returns the images of states after the last step: their first tensors, which a latent prior decodes. The states
// are those of one batch. It returns ErrDiverged if the decoder returns values that are not finite.
func (s *Solver) Answers(ctx context.Context, states []State) ([][]float32, error) {
	s.using.Lock()
	defer s.using.Unlock()
	out := make([][]float32, len(states))
	if s.decoder == nil {
		for i, st := range states {
			out[i] = st.Image()
		}
		return out, nil
	}
	if len(states) == 0 || len(states) > s.n {
		return nil, fmt.Errorf("decode %d answers: the batch is %d", len(states), s.n)
	}
	size := len(s.decoder.latents.F32) / s.n
	for i := range s.n {
		latent := states[0].Image() // in unused places of the batch
		if i < len(states) {
			latent = states[i].Image()
		}
		if len(latent) != size {
			return nil, fmt.Errorf("decode answer %d: the latent has %d elements, want %d", i+1, len(latent), size)
		}
		copy(s.decoder.latents.F32[i*size:], latent)
	}
	if err := s.decoder.sess.Run(ctx, []*onnxruntime.Tensor{s.decoder.latents}, []*onnxruntime.Tensor{s.decoder.images}); err != nil {
		return nil, fmt.Errorf("decode the answers: %w", err)
	}
	size = len(s.decoder.images.F32) / s.n
	for i := range out {
		out[i] = append([]float32(nil), s.decoder.images.F32[i*size:(i+1)*size]...)
		if _, ok := raster.Finite(out[i]); !ok {
			return nil, fmt.Errorf("decode answer %d of the batch: %w: %s", i+1, ErrDiverged, s.tooLarge())
		}
	}
	return out, nil
}

// decoder decodes the answers of a batch.
type decoder struct {
	latents, images *onnxruntime.Tensor
	sess            *onnxruntime.Session
}

// newDecoder compiles the decoder of a run's prior for n images.
func newDecoder(rt *onnxruntime.Runtime, run *method.Run, n int) (d *decoder, err error) {
	g := onnx.NewGraph(run.Prior.Opset())
	z := g.Input("z", onnx.Float, run.SpaceDims(n)...)
	x, err := run.Prior.Space().Decode(g, z)
	if err != nil {
		return nil, err
	}
	g.Output("x", x)
	model, err := g.Marshal("decoder")
	if err != nil {
		return nil, err
	}
	tensors, err := onnxruntime.NewTensors(z, x)
	if err != nil {
		return nil, err
	}
	sess, err := rt.NewSession(model, []string{"z"}, []string{"x"})
	if err != nil {
		onnxruntime.CloseTensors(tensors)
		return nil, fmt.Errorf("compile the decoder for batch %d: %w", n, err)
	}
	return &decoder{latents: tensors[0], images: tensors[1], sess: sess}, nil
}

func (d *decoder) close() error {
	if d == nil {
		return nil
	}
	onnxruntime.CloseTensors([]*onnxruntime.Tensor{d.latents, d.images})
	return d.sess.Close()
}
