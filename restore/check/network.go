package check

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"ddiff/restore/onnx/modelfile"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/raster"
)

// network is a model file that can run at any size that it supports.
type network struct {
	file    string
	data    []byte
	inputs  []modelfile.Port
	outputs []modelfile.Port
	meta    map[string]string
	// parameters is the number of weights.
	parameters int
}

func newNetwork(file string, data []byte) (*network, error) {
	m, err := modelfile.ReadModel(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &network{
		file: file, data: data, inputs: m.Inputs(), outputs: m.Outputs(),
		meta: m.Metadata(), parameters: m.Parameters(),
	}, nil
}

func (n *network) input(name string) (modelfile.Port, bool)  { return find(n.inputs, name) }
func (n *network) output(name string) (modelfile.Port, bool) { return find(n.outputs, name) }

func find(ports []modelfile.Port, name string) (modelfile.Port, bool) {
	i := slices.IndexFunc(ports, func(p modelfile.Port) bool { return p.Name == name })
	if i < 0 {
		return modelfile.Port{}, false
	}
	return ports[i], true
}

func names(ports []modelfile.Port) []string {
	var out []string
	for _, p := range ports {
		out = append(out, p.Name)
	}
	return out
}

// runner is a network compiled for the shapes of some inputs.
type runner struct {
	network *network
	session *onnxruntime.Session
	names   []string
	in, out []*onnxruntime.Tensor
	outputs []string
}

// open compiles the network for inputs of the given shapes. want gives the shapes of outputs that do not follow from the
// inputs.
func (n *network) open(rt *onnxruntime.Runtime, in map[string]*raster.Array, outputs []string, want map[string]*raster.Array) (*runner, error) {
	r := &runner{network: n, outputs: outputs, names: slices.Sorted(maps.Keys(in))}
	fail := func(err error) (*runner, error) {
		r.close()
		return nil, fmt.Errorf("%s: %w", n.file, err)
	}
	lengths := map[string]int{}
	for _, p := range n.inputs {
		a, ok := in[p.Name]
		if !ok {
			return fail(fmt.Errorf("%w: no values for its input %s", ErrInterface, p.Name))
		}
		if err := p.Bind(a.Shape, lengths); err != nil {
			return fail(fmt.Errorf("%w: %w", ErrInterface, err))
		}
	}
	for _, name := range r.names {
		p, ok := n.input(name)
		if !ok {
			return fail(fmt.Errorf("%w: it has no input %s", ErrInterface, name))
		}
		t, err := onnxruntime.NewTensor(p.DType, in[name].Shape...)
		if err != nil {
			return fail(err)
		}
		r.in = append(r.in, t)
	}
	for _, name := range outputs {
		p, ok := n.output(name)
		if !ok {
			return fail(fmt.Errorf("%w: it has no output %s", ErrInterface, name))
		}
		dims, err := p.Shape(lengths)
		if a := want[name]; err != nil && a != nil {
			dims, err = a.Shape, nil
		}
		if err != nil {
			return fail(fmt.Errorf("%w: %w", ErrInterface, err))
		}
		t, err := onnxruntime.NewTensor(p.DType, dims...)
		if err != nil {
			return fail(err)
		}
		r.out = append(r.out, t)
	}
	r.set(in)
	var err error
	if r.session, err = rt.NewSession(n.data, r.names, outputs); err != nil {
		return fail(err)
	}
	return r, nil
}

// set replaces the values of inputs; shapes must not change.
func (r *runner) set(in map[string]*raster.Array) {
	for i, name := range r.names {
		a, ok := in[name]
		if !ok {
			continue
		}
		copy(r.in[i].F32, a.Data)
		for j := range r.in[i].I64 {
			r.in[i].I64[j] = int64(a.Data[j])
		}
	}
}

// run returns copies of the outputs. ErrNotFinite: a value is NaN or infinite.
func (r *runner) run(ctx context.Context) (map[string]*raster.Array, error) {
	if err := r.session.Run(ctx, r.in, r.out); err != nil {
		return nil, fmt.Errorf("%s: %w", r.network.file, err)
	}
	out := map[string]*raster.Array{}
	for i, name := range r.outputs {
		data := slices.Clone(r.out[i].F32)
		if at, ok := raster.Finite(data); !ok {
			return nil, fmt.Errorf("%s: %w: value %d of %s is %v", r.network.file, ErrNotFinite, at, name, data[at])
		}
		out[name] = &raster.Array{Shape: r.out[i].Dims(), Data: data}
	}
	return out, nil
}

func (r *runner) close() {
	onnxruntime.CloseTensors(r.in)
	onnxruntime.CloseTensors(r.out)
	if r.session != nil {
		r.session.Close()
	}
}

// compare runs the network on the inputs of vectors and compares the outputs.
func (n *network) compare(ctx context.Context, rt *onnxruntime.Runtime, v *Vectors) (*Agreement, error) {
	r, err := n.open(rt, v.Inputs, slices.Sorted(maps.Keys(v.Outputs)), v.Outputs)
	if err != nil {
		return nil, err
	}
	defer r.close()
	got, err := r.run(ctx)
	if err != nil {
		return nil, err
	}
	return v.compare(got)
}

// Limits of the deviation of a model from its vectors, with which the exporters are tested.
const (
	maxAbs         = 1e-4 // in fp32, in units of the reference's RMS if that is above 1
	accuracyFactor = 4    // permitted in fp32, where the vectors state PyTorch's accuracy, in units of it
	minPSNR        = 50   // in fp16, in dB
)

// compare compares outputs with the vectors.
func (v *Vectors) compare(got map[string]*raster.Array) (*Agreement, error) {
	a := &Agreement{Deviation: Deviation{PSNR: 200}, Precision: v.Precision, OK: true}
	for name, want := range v.Outputs {
		if !slices.Equal(got[name].Shape, want.Shape) {
			return nil, fmt.Errorf("%w: %s has the shape %v, the model's output %v", ErrVectors, name, want.Shape, got[name].Shape)
		}
		d := Deviate(got[name].Data, want.Data)
		a.Deviation = a.max(d)
		if v.Precision == "fp16" {
			a.OK = a.OK && d.PSNR >= minPSNR
		} else {
			a.Accuracy = max(a.Accuracy, v.Accuracy[name])
			a.OK = a.OK && d.MaxAbs <= max(maxAbs*max(1, rms(want.Data)), accuracyFactor*v.Accuracy[name])
		}
	}
	return a, nil
}
