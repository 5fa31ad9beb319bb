package onnxruntime

import (
	"fmt"
	"slices"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/modelfile"
	"ddiff/restore/onnx/onnxpb"
)

// Capturing returns r with sessions that CUDA records at the first call of a [Binding], and replays with one launch (CUDA graph). A model with control flow computes as
// always. It is valid until r is closed; do not close it.
//
// A record reads and writes fixed memory of the device: a binding copies the inputs there and the outputs from there, with two further models. Use [Session.Bind], not
// [Session.Run]. Other providers compute a call between the same copies. WebGPU has records too (enableGraphCapture), but ONNX Runtime 1.30 replays the
// kernels alone: an output that is a copy of another value keeps its first one.
func (r *Runtime) Capturing() *Runtime {
	return r.capturing(true)
}

func (r *Runtime) capturing(on bool) *Runtime {
	view := r.Threaded(r.cfg.Threads)
	view.capture = on
	return view
}

// record has the models around a record.
type record struct {
	feed, drain *Binding
}

// newRecord binds the inputs and outputs of a session to fixed memory.
func newRecord(b *Binding) (rec *record, err error) {
	plain := b.session.runtime.capturing(false)
	rec = &record{}
	defer func() {
		if err != nil {
			rec.close()
		}
	}()
	var fixed [2][]*Tensor
	for kind, ports := range b.session.ports {
		for i, v := range ports {
			t, err := b.newTensor(v, b.outputMemory(0))
			if err != nil {
				return rec, err
			}
			fixed[kind] = append(fixed[kind], t)
			if err := b.set(kind, i, t); err != nil {
				return rec, err
			}
		}
	}
	if rec.feed, err = plain.newCopy(b.session.ports[bindInput]); err != nil {
		return rec, err
	}
	for i, t := range fixed[bindInput] {
		if err := rec.feed.SetOutput(i, t); err != nil {
			return rec, err
		}
	}
	if rec.drain, err = plain.newCopy(b.session.ports[bindOutput]); err != nil {
		return rec, err
	}
	for i, t := range fixed[bindOutput] {
		if err := rec.drain.SetInput(i, t); err != nil {
			return rec, err
		}
	}
	return rec, nil
}

// newCopy returns the binding of a model that copies its inputs to its outputs.
func (r *Runtime) newCopy(values []onnx.Value) (*Binding, error) {
	g := onnx.NewGraph(onnx.DefaultOpset)
	var inputs, outputs []string
	for i, v := range values {
		in, out := g.Input(fmt.Sprint("from ", i), v.DType, v.Dims...), fmt.Sprint("to ", i)
		if v.DType == onnx.Int64 { // which WebGPU's Identity lacks
			g.Output(out, g.Reshape(in, v.Dims...))
		} else {
			g.Output(out, in)
		}
		inputs, outputs = append(inputs, in.Name), append(outputs, out)
	}
	model, err := g.Marshal("copy")
	if err != nil {
		return nil, err
	}
	s, err := r.NewSession(model, inputs, outputs)
	if err != nil {
		return nil, err
	}
	b, err := s.Bind()
	if err != nil {
		s.Close()
	}
	return b, err
}

func (rec *record) close() {
	for _, b := range []*Binding{rec.feed, rec.drain} {
		if b != nil {
			b.Close()
			_ = b.session.Close()
		}
	}
}

// portsOf returns the inputs and outputs of a model, whose dimensions are fixed, in the order of their names; none for one with control flow.
func portsOf(model []byte, inputs, outputs []string) (ports [2][]onnx.Value, err error) {
	m, err := modelfile.ReadModel(model)
	if err != nil {
		return ports, err
	}
	if slices.ContainsFunc(m.Proto().Graph.Node, func(n *onnxpb.NodeProto) bool { return len(modelfile.Captured(n)) > 0 }) {
		return ports, nil
	}
	for kind, all := range [2][]modelfile.Port{m.Inputs(), m.Outputs()} {
		for _, name := range [2][]string{inputs, outputs}[kind] {
			for _, p := range all {
				if p.Name == name {
					ports[kind] = append(ports[kind], onnx.Value{Name: name, DType: p.DType, Dims: p.Dims})
				}
			}
		}
	}
	return ports, nil
}
