package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxpb"
	"ddiff/restore/raster"
)

// port is an input or output with the names of its free dimensions.
type port struct {
	name  string
	dtype onnx.DType
	dims  []string // a number, a name, NAME/NUMBER or NAME*NUMBER
}

// network is a model file that can be run at any size that it allows.
type network struct {
	file    string
	data    []byte
	inputs  []port
	outputs []port
	meta    map[string]string
	// parameters is the number of elements of the weights.
	parameters int
}

func newNetwork(file string, data []byte) (*network, error) {
	m := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(data, m); err != nil || m.Graph == nil {
		return nil, fmt.Errorf("%s: %w: not an ONNX file, or cut short (%d bytes)", file, onnx.ErrModel, len(data))
	}
	n := &network{file: file, data: data, meta: map[string]string{}}
	for _, e := range m.MetadataProps {
		n.meta[e.Key] = e.Value
	}
	weights := map[string]bool{}
	for _, t := range m.Graph.Initializer {
		weights[t.Name] = true
		size := 1
		for _, d := range t.Dims {
			size *= int(d)
		}
		n.parameters += size
	}
	for _, v := range m.Graph.Input {
		if !weights[v.Name] {
			n.inputs = append(n.inputs, newPort(v))
		}
	}
	for _, v := range m.Graph.Output {
		n.outputs = append(n.outputs, newPort(v))
	}
	return n, nil
}

func newPort(v *onnxpb.ValueInfoProto) port {
	t := v.GetType().GetTensorType()
	p := port{name: v.Name, dtype: onnx.DType(t.GetElemType())}
	for _, d := range t.GetShape().GetDim() {
		if x, ok := d.Value.(*onnxpb.TensorShapeProto_Dimension_DimValue); ok {
			p.dims = append(p.dims, strconv.FormatInt(x.DimValue, 10))
		} else {
			p.dims = append(p.dims, d.GetDimParam())
		}
	}
	return p
}

func (n *network) input(name string) (port, bool)  { return find(n.inputs, name) }
func (n *network) output(name string) (port, bool) { return find(n.outputs, name) }

func find(ports []port, name string) (port, bool) {
	i := slices.IndexFunc(ports, func(p port) bool { return p.name == name })
	if i < 0 {
		return port{}, false
	}
	return ports[i], true
}

// named are the names of ports.
func named(ports []port) []string {
	var out []string
	for _, p := range ports {
		out = append(out, p.name)
	}
	return out
}

// bind holds an input's shape against its dimensions and notes the free ones.
func (p port) bind(shape []int, free map[string]int) error {
	if len(shape) != len(p.dims) {
		return fmt.Errorf("%s has %d dimensions, %v were given", p.name, len(p.dims), shape)
	}
	for i, d := range p.dims {
		if n, err := strconv.Atoi(d); err == nil {
			if n != shape[i] {
				return fmt.Errorf("%s has the dimensions %v, %v were given", p.name, p.dims, shape)
			}
			continue
		}
		if old, ok := free[d]; ok && old != shape[i] && d != "" {
			return fmt.Errorf("%s has the dimensions %v, but %s is %d elsewhere", p.name, p.dims, d, old)
		}
		free[d] = shape[i]
	}
	return nil
}

// shape works the dimensions out from those of the inputs.
func (p port) shape(free map[string]int) ([]int, error) {
	var out []int
	for _, d := range p.dims {
		if n, err := strconv.Atoi(d); err == nil {
			out = append(out, n)
			continue
		}
		n, err := dimension(d, free)
		if err != nil {
			return nil, fmt.Errorf("%w: the dimension %q of %s follows from no input", ErrInterface, d, p.name)
		}
		out = append(out, n)
	}
	return out, nil
}

// dimension is the length that NAME, NAME/NUMBER or NAME*NUMBER stands for.
func dimension(text string, free map[string]int) (int, error) {
	name, factor, times := strings.Cut(text, "*")
	name, divisor, over := strings.Cut(name, "/")
	n, ok := free[name]
	if !ok || name == "" {
		return 0, fmt.Errorf("no dimension %q", name)
	}
	if times {
		k, err := strconv.Atoi(factor)
		if err != nil || k < 1 {
			return 0, fmt.Errorf("factor %q", factor)
		}
		n *= k
	}
	if over {
		k, err := strconv.Atoi(divisor)
		if err != nil || k < 1 || n%k != 0 {
			return 0, fmt.Errorf("divisor %q of %d", divisor, n)
		}
		n /= k
	}
	return n, nil
}

// run evaluates the network once, and gives the outputs that were asked for and the time.
func (n *network) run(ctx context.Context, rt *onnx.Runtime, in map[string]*raster.Array, outputs []string) (map[string]*raster.Array, time.Duration, error) {
	r, err := n.open(rt, in, outputs, nil)
	if err != nil {
		return nil, 0, err
	}
	defer r.close()
	begin := time.Now()
	out, err := r.run(ctx)
	return out, time.Since(begin), err
}

// runner is a network compiled for the shapes of some inputs.
type runner struct {
	network *network
	session *onnx.Session
	names   []string
	in, out []*onnx.Tensor
	outputs []string
}

// open compiles; want are shapes of outputs whose dimensions follow from no input.
func (n *network) open(rt *onnx.Runtime, in map[string]*raster.Array, outputs []string, want map[string]*raster.Array) (*runner, error) {
	r := &runner{network: n, outputs: outputs, names: slices.Sorted(maps.Keys(in))}
	fail := func(err error) (*runner, error) {
		r.close()
		return nil, fmt.Errorf("%s: %w", n.file, err)
	}
	free := map[string]int{}
	for _, p := range n.inputs {
		a, ok := in[p.name]
		if !ok {
			return fail(fmt.Errorf("%w: nothing was given for its input %s", ErrInterface, p.name))
		}
		if err := p.bind(a.Shape, free); err != nil {
			return fail(fmt.Errorf("%w: %w", ErrInterface, err))
		}
	}
	for _, name := range r.names {
		p, ok := n.input(name)
		if !ok {
			return fail(fmt.Errorf("%w: it has no input %s", ErrInterface, name))
		}
		t, err := onnx.NewTensor(p.dtype, in[name].Shape...)
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
		dims, err := p.shape(free)
		if a := want[name]; err != nil && a != nil {
			dims, err = a.Shape, nil
		}
		if err != nil {
			return fail(err)
		}
		t, err := onnx.NewTensor(p.dtype, dims...)
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

// set puts other values of the same shapes into the inputs.
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

// run gives copies of the outputs; ErrNotFinite where one holds a NaN or an infinity.
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
	onnx.CloseTensors(r.in)
	onnx.CloseTensors(r.out)
	if r.session != nil {
		r.session.Close()
	}
}

// agree runs the network on the inputs of vectors and compares.
func (n *network) agree(ctx context.Context, rt *onnx.Runtime, v *Vectors, l Limits) (*Agreement, error) {
	r, err := n.open(rt, v.Inputs, slices.Sorted(maps.Keys(v.Outputs)), v.Outputs)
	if err != nil {
		return nil, err
	}
	defer r.close()
	got, err := r.run(ctx)
	if err != nil {
		return nil, err
	}
	return v.compare(got, l)
}

// compare holds outputs against the vectors'.
func (v *Vectors) compare(got map[string]*raster.Array, l Limits) (*Agreement, error) {
	a := &Agreement{Deviation: Deviation{PSNR: 200}, Precision: v.Precision, OK: true}
	for name, want := range v.Outputs {
		if !slices.Equal(got[name].Shape, want.Shape) {
			return nil, fmt.Errorf("%w: %s has the shape %v, the model gives %v", ErrVectors, name, want.Shape, got[name].Shape)
		}
		d := Deviate(got[name].Data, want.Data)
		a.Deviation = a.worse(d)
		if v.Precision == "fp16" {
			a.OK = a.OK && d.PSNR >= l.PSNR
		} else {
			a.OK = a.OK && d.MaxAbs <= l.MaxAbs*max(1, rms(want.Data))
		}
	}
	return a, nil
}
