package prior

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ddiff/internal/failure"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/restore/onnx"
)

// ErrForm: the network has no such form, or the device cannot compute it.
var ErrForm = failure.New(failure.Input, "form of the network")

// Form is the name of a way to compute a score network: a rewriting of its graph, perhaps with [Form.Graph]. All predict the same up to rounding.
type Form string

// The rewritings. TimeTables and those after it read everything that depends on the time alone from tables of constants.
const (
	Exported     Form = "exported" // as in the file
	TimeTables   Form = "tables"   //
	ChannelsLast Form = "nhwc"     // operations of CUDA and of this program on images [N, H, W, C]
)

const graphSuffix = "+graph"

// Rewritings lists the forms without a graph.
func Rewritings() []Form { return []Form{Exported, TimeTables, ChannelsLast} }

// ParseForm parses the name of a form.
func ParseForm(s string) (Form, error) {
	f := Form(s)
	if rewriting, _ := f.split(); !slices.Contains(Rewritings(), rewriting) {
		return "", fmt.Errorf("%w: %q is none of %v, with %s behind it or not", ErrForm, s, Rewritings(), graphSuffix)
	}
	return f, nil
}

func (f Form) split() (rewriting Form, graph bool) {
	name, graph := strings.CutSuffix(string(f), graphSuffix)
	return Form(name), graph
}

// Graph reports whether a GPU records the calls of a model without control flow once and replays the record, see onnxruntime.Runtime.Capturing.
func (f Form) Graph() bool {
	_, graph := f.split()
	return graph
}

// WithGraph returns the form with Graph.
func (f Form) WithGraph() Form {
	rewriting, _ := f.split()
	return rewriting + graphSuffix
}

// InForm returns the prior with its network in a form. It computes tables on the CPU. Graphs that differentiate the network, or evaluate it in a loop, need
// the exported form. ErrForm: the tables would be larger than the network, or the runtime is OpenVINO, which has a form of its own.
func (p *Prior) InForm(rt *onnxruntime.Runtime, f Form) (*Prior, error) {
	rewriting, graph := f.split()
	if rewriting == "" || rewriting == Exported && !graph {
		return p, nil
	}
	if rt.Divides() {
		return nil, fmt.Errorf("%w %s: openvino has its own", ErrForm, f)
	}
	p.formsMu.Lock()
	defer p.formsMu.Unlock()
	if known := p.forms[f]; known != nil {
		return known, nil
	}
	file := p.file
	if rewriting == ChannelsLast {
		file = file.ChannelsLast()
	}
	if rewriting != Exported {
		var err error
		if file, err = p.withTables(rt, file); err != nil {
			return nil, fmt.Errorf("%w %s: %w", ErrForm, f, err)
		}
	}
	q := &Prior{Description: p.Description, file: file, x: p.x, t: p.t, output: p.output, parts: p.parts, graph: graph}
	q.fused = fused(file)
	if p.forms == nil {
		p.forms = map[Form]*Prior{}
	}
	p.forms[f] = q
	return q, nil
}

// withTables replaces the values of a network that depend on the time alone by tables, at most as many numbers as the network has weights.
func (p *Prior) withTables(rt *onnxruntime.Runtime, file *modelfile.Model) (*modelfile.Model, error) {
	names, m := file.TimeValues()
	if m == nil {
		return file, nil
	}
	n, h, w := p.smallest()
	steps := p.Schedule.Steps()
	if p.x.Dims[0] <= 0 {
		n = steps
	}
	dims := p.Space().Dims([]int{n, p.Card.Channels, h, w})
	types, err := m.Types(map[string][]int{p.x.Name: dims, p.t.Name: {n}})
	if err != nil {
		return nil, err
	}
	g := onnx.NewGraph(p.Opset())
	times := g.Input("t", onnx.Int64, n)
	t := times
	if p.t.DType == onnx.Float {
		t = g.Cast(t, onnx.Float)
	}
	x := g.Expand(g.Scalar(0), dims...)
	outputs, size := map[string][]int{}, 0
	names = slices.DeleteFunc(names, func(name string) bool {
		v, known := types[name]
		known = known && v.DType == onnx.Float && v.Rank() > 0 && v.Dims[0] == n
		if known {
			outputs[name] = v.Dims
			size += v.Size() / n * steps
		}
		return !known
	})
	if size > p.Parameters() {
		return nil, fmt.Errorf("its tables have %d numbers, the network %d", size, p.Parameters())
	}
	values, err := g.Inline(m, map[string]onnx.Value{p.x.Name: x, p.t.Name: t}, outputs)
	if err != nil {
		return nil, err
	}
	var tables []onnx.Value
	for i, name := range names {
		v := values[name]
		v.Name = fmt.Sprint("table ", i)
		g.Output(v.Name, values[name])
		tables = append(tables, v)
	}
	got, err := evaluateTimes(rt, g, times, tables, steps)
	if err != nil {
		return nil, err
	}
	out := map[string]modelfile.Table{}
	for i, name := range names {
		out[name] = modelfile.Table{Dims: append([]int{steps}, outputs[name][1:]...), Data: got[i]}
	}
	return file.WithTables(out)
}

// evaluateTimes returns the outputs of a graph at the times 0 to steps − 1, on the CPU.
func evaluateTimes(rt *onnxruntime.Runtime, g *onnx.Graph, times onnx.Value, outputs []onnx.Value, steps int) ([][]float32, error) {
	cpu, err := rt.With(onnxruntime.Config{Provider: onnxruntime.ProviderCPU, Threads: rt.Threads()})
	if err != nil {
		return nil, err
	}
	defer cpu.Close()
	model, err := g.Marshal("tables")
	if err != nil {
		return nil, err
	}
	s, err := cpu.NewSerialSession(model, []string{times.Name}, onnx.Names(outputs))
	if err != nil {
		return nil, err
	}
	defer s.Close()
	t, err := onnxruntime.NewTensors(times)
	if err != nil {
		return nil, err
	}
	defer onnxruntime.CloseTensors(t)
	y, err := onnxruntime.NewTensors(outputs...)
	if err != nil {
		return nil, err
	}
	defer onnxruntime.CloseTensors(y)
	n, out := times.Size(), make([][]float32, len(outputs))
	for first := 0; first < steps; first += n {
		for i := range n {
			t[0].I64[i] = int64(min(first+i, steps-1))
		}
		if err := s.Run(context.Background(), t, y); err != nil {
			return nil, err
		}
		for i, v := range y {
			rows := min(n, steps-first)
			out[i] = append(out[i], v.F32[:len(v.F32)/n*rows]...)
		}
	}
	return out, nil
}
