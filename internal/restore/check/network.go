package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/raster"
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

// openNetwork reads a model file.
func openNetwork(file string) (*network, error) {
	m, err := modelfile.Open(file)
	if err != nil {
		return nil, err
	}
	data, err := proto.Marshal(m.Proto())
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

// run compiles the network for the shapes of inputs, and returns its outputs for the values of each batch and the times of the
// calls. want gives the shapes of outputs that do not follow from the inputs. ErrNotFinite: a value is NaN or infinite.
func (n *network) run(ctx context.Context, rt *onnxruntime.Runtime, batches []map[string]*raster.Array, outputs []string, want map[string]*raster.Array) ([]map[string]*raster.Array, durations, error) {
	fail := func(err error) ([]map[string]*raster.Array, durations, error) {
		return nil, nil, fmt.Errorf("%s: %w", n.file, err)
	}
	var in, out []*onnxruntime.Tensor
	defer func() {
		onnxruntime.CloseTensors(in)
		onnxruntime.CloseTensors(out)
	}()
	lengths, inputs := map[string]int{}, slices.Sorted(maps.Keys(batches[0]))
	for _, p := range n.inputs {
		a, ok := batches[0][p.Name]
		if !ok {
			return fail(fmt.Errorf("%w: no values for its input %s", ErrInterface, p.Name))
		}
		if err := p.Bind(a.Shape, lengths); err != nil {
			return fail(fmt.Errorf("%w: %w", ErrInterface, err))
		}
	}
	for _, name := range inputs {
		p, ok := n.input(name)
		if !ok {
			return fail(fmt.Errorf("%w: it has no input %s", ErrInterface, name))
		}
		t, err := onnxruntime.NewTensor(p.DType, batches[0][name].Shape...)
		if err != nil {
			return fail(err)
		}
		in = append(in, t)
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
		out = append(out, t)
	}
	session, err := rt.NewSession(n.data, inputs, outputs)
	if err != nil {
		return fail(err)
	}
	defer session.Close()
	var all []map[string]*raster.Array
	var times durations
	for _, batch := range batches {
		for i, name := range inputs {
			copy(in[i].F32, batch[name].Data)
			for j := range in[i].I64 {
				in[i].I64[j] = int64(batch[name].Data[j])
			}
		}
		begin := time.Now()
		if err := session.Run(ctx, in, out); err != nil {
			return fail(err)
		}
		times = append(times, time.Since(begin))
		got := map[string]*raster.Array{}
		for i, name := range outputs {
			data := slices.Clone(out[i].F32)
			if at, ok := raster.Finite(data); !ok {
				return fail(fmt.Errorf("%w: value %d of %s is %v", ErrNotFinite, at, name, data[at]))
			}
			got[name] = &raster.Array{Shape: out[i].Dims(), Data: data}
		}
		all = append(all, got)
	}
	return all, times, nil
}

// compare runs the network on the inputs of vectors and compares the outputs.
func (n *network) compare(ctx context.Context, rt *onnxruntime.Runtime, v *Vectors) (*Agreement, error) {
	got, _, err := n.run(ctx, rt, []map[string]*raster.Array{v.Inputs}, slices.Sorted(maps.Keys(v.Outputs)), v.Outputs)
	if err != nil {
		return nil, err
	}
	return v.compare(got[0])
}

// Limits of the deviation of a model from its vectors, with which the exporters are tested.
const (
	maxAbs  = 1e-4 // in float32, in units of the reference's RMS if that is above 1
	minPSNR = 50   // in float16, in dB
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
		if v.Precision == "float16" {
			a.OK = a.OK && d.PSNR >= minPSNR
		} else {
			a.OK = a.OK && d.MaxAbs <= maxAbs*max(1, rms(want.Data))
		}
	}
	return a, nil
}
