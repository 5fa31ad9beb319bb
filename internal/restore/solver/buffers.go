package solver

import (
	"context"
	"fmt"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/restore/onnx"
)

// buffers have one tensor of the state of a batch, in the memory of the device: a step reads one and writes the other.
type buffers struct {
	pair [2]*onnxruntime.Tensor
	now  *onnxruntime.Tensor // the state after the last step
	host *onnxruntime.Tensor // that the host reads and writes: the first one on the CPU
}

// newBuffers makes the buffers of output i of a step.
func newBuffers(b *onnxruntime.Binding, i int, v onnx.Value) (*buffers, error) {
	s := &buffers{}
	for k := range s.pair {
		var err error
		if s.pair[k], err = b.NewOutput(i, v); err != nil {
			return nil, err
		}
	}
	s.host = s.pair[0]
	if s.host.F32 != nil {
		return s, nil
	}
	var err error
	s.host, err = b.NewHost(v)
	return s, err
}

// next is the buffer that the next step writes.
func (s *buffers) next() *onnxruntime.Tensor {
	if s.now == s.pair[0] {
		return s.pair[1]
	}
	return s.pair[0]
}

// reader copies the state of a GPU to the host. Its model returns its inputs: the runtime copies tensors only around a call.
type reader struct {
	session *onnxruntime.Session
	*onnxruntime.Binding
}

// newReader compiles the reader of the state if the host cannot access it.
func (s *Solver) newReader() (err error) {
	if s.state[0].host == s.state[0].pair[0] {
		return nil
	}
	g := onnx.NewGraph(onnx.DefaultOpset)
	var inputs, outputs []string
	for i, b := range s.state {
		v := g.Input(fmt.Sprint("state ", i), onnx.Float, b.host.Dims()...)
		g.Output(fmt.Sprint("copy ", i), v)
		inputs, outputs = append(inputs, v.Name), append(outputs, fmt.Sprint("copy ", i))
	}
	model, err := g.Marshal("reader")
	if err != nil {
		return err
	}
	s.reader = &reader{}
	if s.reader.session, err = s.rt.NewSession(model, inputs, outputs); err != nil {
		return err
	}
	if s.reader.Binding, err = s.reader.session.Bind(); err != nil {
		return err
	}
	for i, b := range s.state {
		if err := s.reader.SetOutput(i, b.host); err != nil {
			return err
		}
	}
	return nil
}

// readState returns the tensors of the state after the last step, which the host reads.
func (s *Solver) readState(ctx context.Context) (tensors []*onnxruntime.Tensor, err error) {
	for i, b := range s.state {
		if s.reader == nil {
			tensors = append(tensors, b.now)
			continue
		}
		if err := s.reader.SetInput(i, b.now); err != nil {
			return nil, err
		}
		tensors = append(tensors, b.host)
	}
	if s.reader != nil {
		err = s.reader.Run(ctx)
	}
	return tensors, err
}

func (r *reader) close() error {
	if r == nil || r.session == nil {
		return nil
	}
	r.Close()
	return r.session.Close()
}
