package onnxruntime

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxpb"
	"ddiff/restore/onnx"
)

// Capturing returns r with sessions that CUDA (CUDA graph) and WebGPU record at the first call of a [Binding], and replay with one launch. A model with control flow
// computes as always, and so do other providers. It is valid until r is closed; do not close it.
//
// A record reads and writes fixed memory of the device: a binding copies the inputs there and the outputs from there, with two further models. Use [Session.Bind], not
// [Session.Run]. The first two calls are made without the record too. If their bits differ, or the model cannot be recorded, all calls are, and the log has a warning: WebGPU of ONNX Runtime 1.30 replays
// no copies of buffers, so that an output that is a copy of another value keeps its first one.
func (r *Runtime) Capturing() *Runtime {
	return r.capturing(true)
}

func (r *Runtime) capturing(on bool) *Runtime {
	view := r.Threaded(r.cfg.Threads)
	view.capture = on
	return view
}

// recordChecks is the number of calls that are made in both ways: one makes the record, the next replays it.
const recordChecks = 2

// record has the models around a record.
type record struct {
	feed, drain *Binding
	plain       *Binding // the same model without a record, which checks the first calls, or replaces it
	proof       *Binding // copies the outputs to the host; nil after the checks
	checked     int
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
	if rec.plain, err = b.session.plain.Bind(); err != nil {
		return rec, err
	}
	if rec.proof, err = plain.newCopy(b.session.ports[bindOutput]); err != nil {
		return rec, err
	}
	for i, t := range fixed[bindInput] {
		if err := rec.plain.SetInput(i, t); err != nil {
			return rec, err
		}
	}
	for i, t := range fixed[bindOutput] {
		host, err := rec.proof.NewHost(b.session.ports[bindOutput][i])
		if err != nil {
			return rec, err
		}
		if err := errors.Join(rec.plain.SetOutput(i, t), rec.drain.SetInput(i, t), rec.proof.SetInput(i, t), rec.proof.SetOutput(i, host)); err != nil {
			return rec, err
		}
	}
	return rec, nil
}

// run makes a call of b.
func (rec *record) run(ctx context.Context, b *Binding) error {
	if err := rec.feed.run(ctx); err != nil {
		return err
	}
	if err := rec.compute(ctx, b); err != nil {
		return err
	}
	return rec.drain.run(ctx)
}

func (rec *record) compute(ctx context.Context, b *Binding) error {
	if rec.plain == nil {
		return b.run(ctx)
	}
	if rec.proof == nil {
		return rec.plain.run(ctx)
	}
	// The record comes first: what it does not write is left from the call before.
	fault := b.run(ctx)
	got, err := rec.outputs(ctx)
	if err != nil {
		return err
	}
	if err := rec.plain.run(ctx); err != nil {
		return err
	}
	want, err := rec.outputs(ctx)
	if err != nil {
		return err
	}
	if fault == nil && !reflect.DeepEqual(got, want) {
		fault = errors.New("it returns other values than a call")
	}
	if fault != nil {
		b.session.runtime.unrecorded(b.session.device, fault)
		release(&rec.proof)
		return nil
	}
	if rec.checked++; rec.checked == recordChecks {
		release(&rec.plain, &rec.proof)
	}
	return nil
}

// unrecorded names the reason why a model is computed without a record.
func (r *Runtime) unrecorded(d Device, reason error) {
	r.cfg.Logger.Warn("a model is computed without a record", "device", d.String(), "reason", reason)
}

// outputs returns the elements of the outputs.
func (rec *record) outputs(ctx context.Context) (out [][]byte, err error) {
	if err := rec.proof.run(ctx); err != nil {
		return nil, err
	}
	for _, t := range rec.proof.bound[bindOutput] {
		out = append(out, slices.Clone(unsafe.Slice((*byte)(t.data()), t.bytes())))
	}
	return out, nil
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

func (rec *record) close() { release(&rec.feed, &rec.drain, &rec.plain, &rec.proof) }

// release closes bindings with their sessions.
func release(bindings ...**Binding) {
	for _, b := range bindings {
		if *b != nil {
			(*b).Close()
			_ = (*b).session.Close()
			*b = nil
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
