package onnxruntime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ddiff/restore/onnx/modelfile"
)

// ErrFallback: the provider does not support some nodes of a model. ONNX Runtime would silently run them on the
// CPU.
var ErrFallback = errors.New("nodes would run on the CPU")

// guardKey is the setting that makes ONNX Runtime refuse such a session. It checks the nodes of the main graph only: a
// Loop counts as a CPU node if the provider has no Loop, even if its body runs on the device.
const guardKey = "session.disable_cpu_ep_fallback"

func refusedFallback(err error) bool {
	return err != nil && strings.Contains(err.Error(), "fallback to CPU EP has been explicitly disabled")
}

// cpuNode is a node that ran on the CPU.
type cpuNode struct{ op, name string }

// fallback compiles a refused model without the guard if all of its CPU nodes are allowed. Otherwise it returns an error
// that names them.
func (r *Runtime) fallback(model []byte, inputs, outputs []string, t target) (*Session, error) {
	t.unguarded = true
	nodes, err := r.nodesOnCPU(model, inputs, outputs, t)
	if err != nil {
		return nil, fmt.Errorf("make session: %w: %w; their names are unknown: %w", ErrRuntime, ErrFallback, err)
	}
	allowed := strings.Split(r.cfg.Options[OptionAllowFallback], ",")
	var refused, kinds []string
	for _, n := range nodes {
		if slices.Contains(allowed, n.op) {
			continue
		}
		refused = append(refused, n.op+" "+n.name)
		if !slices.Contains(kinds, n.op) {
			kinds = append(kinds, n.op)
		}
	}
	if len(refused) == 0 {
		r.cfg.Logger.Warn("nodes run on the CPU, as allow_fallback permits", "provider", r.Provider(), "nodes", len(nodes))
		return r.compile(model, inputs, outputs, t)
	}
	const shown = 8
	more := ""
	if len(refused) > shown {
		more = fmt.Sprintf(" and %d more", len(refused)-shown)
		refused = refused[:shown]
	}
	return nil, fmt.Errorf("make session: %w: %w: %s does not support %s%s; to run them on the CPU, set allow_fallback=%s",
		ErrRuntime, ErrFallback, r.Provider(), strings.Join(refused, ", "), more, strings.Join(kinds, ","))
}

// nodesOnCPU runs the model once, without the guard and with ones as inputs, and reads the nodes on the CPU from the
// library's profile.
func (r *Runtime) nodesOnCPU(model []byte, inputs, outputs []string, t target) ([]cpuNode, error) {
	dir, err := os.MkdirTemp("", "ddiff-profile-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary file
	t.profile = filepath.Join(dir, "p")
	s, err := r.compile(model, inputs, outputs, t)
	if err != nil {
		return nil, err
	}
	err = s.runOnes(model, inputs, outputs)
	if err := errors.Join(err, s.Close()); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "p*"))
	if err != nil || len(files) != 1 {
		return nil, fmt.Errorf("%d profiles instead of one: %w", len(files), err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		return nil, err
	}
	return readProfile(data)
}

// runOnes runs a session with ones as inputs.
func (s *Session) runOnes(model []byte, inputs, outputs []string) error {
	m, err := modelfile.ReadModel(model)
	if err != nil {
		return err
	}
	in, err := onesFor(m.Inputs(), inputs)
	defer CloseTensors(in)
	if err != nil {
		return err
	}
	out, err := onesFor(m.Outputs(), outputs)
	defer CloseTensors(out)
	if err != nil {
		return err
	}
	return s.Run(context.Background(), in, out)
}

// onesFor makes tensors of ones for the named ports. Free dimensions become 1.
func onesFor(ports []modelfile.Port, names []string) (tensors []*Tensor, err error) {
	for _, name := range names {
		i := slices.IndexFunc(ports, func(p modelfile.Port) bool { return p.Name == name })
		if i < 0 {
			return tensors, fmt.Errorf("%w: it has no input or output %s", modelfile.ErrModel, name)
		}
		dims := slices.Clone(ports[i].Dims)
		for k := range dims {
			dims[k] = max(dims[k], 1)
		}
		t, err := NewTensor(ports[i].DType, dims...)
		if err != nil {
			return tensors, err
		}
		tensors = append(tensors, t)
		for k := range t.F32 {
			t.F32[k] = 1
		}
		for k := range t.I64 {
			t.I64[k] = 1
		}
	}
	return tensors, nil
}

// readProfile lists the nodes that ran on the CPU, without repetition.
func readProfile(data []byte) ([]cpuNode, error) {
	var events []struct {
		Cat, Name string
		Args      struct {
			Op       string `json:"op_name"`
			Provider string
		}
	}
	if err := json.Unmarshal(data, &events); err != nil {
		return nil, fmt.Errorf("read profile: %w", err)
	}
	var out []cpuNode
	for _, e := range events {
		name, kernel := strings.CutSuffix(e.Name, "_kernel_time")
		n := cpuNode{e.Args.Op, name}
		if kernel && e.Cat == "Node" && e.Args.Provider == "CPUExecutionProvider" && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out, nil
}
