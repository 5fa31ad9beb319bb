package operator

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"ddiff/internal/failure"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/trial"
	"ddiff/restore/onnx"
	"ddiff/restore/parameter"
)

// ErrFile: a file is not an operator that this program can use. The message states the cause.
var ErrFile = failure.New(failure.Prior, "unusable operator file")

// The names of the ports of an operator file.
const (
	portImage = "x" // float [N, C, H, W], or the same with a batch of 1
	portY     = "y" // float, the measurement, with the batch first
)

// File is an operator y = A(x) from an ONNX file:
//
//   - the input x is a batch of images, the only output y the batch of their measurements, which [onnx.Graph.Gradient] differentiates;
//   - one further input with a batch may be a kernel or code that is drawn for each item, with independent normal entries;
//   - all further inputs are numbers of rank 0, or of one element, and parameters of the task.
//
// The metadata describes the inputs, see [Load].
type File struct {
	// Path names the file in messages. SHA256 is the hex digest of its bytes.
	Path, SHA256 string
	// Doc is one line for people, or empty.
	Doc string
	// Parameters are the numbers that a campaign may set.
	Parameters parameter.List

	opset      int
	multipleOf int
	x, y       modelfile.Port
	draw       *modelfile.Port // nil without a kernel
	std        float64         // of the kernel's entries
	scalars    []modelfile.Port

	model *modelfile.Model // with the nodes that y needs; nil in an outline
	first trial.First

	mu        sync.Mutex
	converted map[int]*modelfile.Model // by operator set
}

// The prefix of an operator's metadata.
const cardPrefix = "ddiff."

// Read returns the bytes of an operator file with external data inlined; see [modelfile.ReadFile].
func Read(path string) ([]byte, error) { return modelfile.ReadFile(path) }

// Load parses an operator file. path names it in messages. These metadata entries are read, all of them optional:
//
//   - ddiff.kind: "operator";
//   - ddiff.name, ddiff.doc: for people;
//   - ddiff.range: "-1..1", the range of x;
//   - ddiff.multiple_of: the sides of x must be multiples of this number;
//   - ddiff.parameter: the name of the kernel's input, ddiff.parameter_std the standard deviation of its entries, default 1;
//   - ddiff.params.NAME: "DEFAULT; RANGE; DOC" of the parameter NAME, as in "1.2; (0, 8]; gain of the sensor". Each number
//     among the inputs has such an entry. See [parameter.ParseRange].
//
// Errors wrap ErrFile, [modelfile.ErrModel], or [onnx.ErrNoGradient] with the operation that has no gradient rule.
func Load(path string, data []byte) (*File, error) {
	m, err := modelfile.ReadModel(data)
	if err != nil {
		return nil, fmt.Errorf("operator %s: %w", path, err)
	}
	sum := sha256.Sum256(data)
	f := &File{Path: path, SHA256: hex.EncodeToString(sum[:]), opset: m.Opset(), model: m.Pruned(portY), first: trial.First{Data: data}}
	if err := f.bind(m); err != nil {
		return nil, fmt.Errorf("operator %s: %w: %w", path, ErrFile, err)
	}
	f.inferOutput()
	if err := f.checkGraph(); err != nil {
		return nil, fmt.Errorf("operator %s: %w", path, err)
	}
	return f, nil
}

// inOpset returns the file in an operator set. It returns ErrFile for a set in which its operations differ.
func (f *File) inOpset(opset int) (*modelfile.Model, error) {
	if f.model == nil {
		return nil, fmt.Errorf("%w: its network is not loaded", ErrFile)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.converted[opset]; m != nil {
		return m, nil
	}
	m, err := f.model.Convert(opset)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	if f.converted == nil {
		f.converted = map[int]*modelfile.Model{}
	}
	f.converted[opset] = m
	return m, nil
}

// Fits returns ErrFile if the operations of the file do not exist in a prior's operator set, or mean something else there, and if
// its images have another number of channels than those of the prior.
func (f *File) Fits(opset, channels int) error {
	if own := f.x.Dims[1]; own != channels {
		return fmt.Errorf("operator %s: %w: its images x have %d channels, those of the prior %d; choose another prior, or export it with %d",
			f.Path, ErrFile, own, channels, channels)
	}
	if _, err := f.inOpset(opset); err != nil {
		return fmt.Errorf("operator %s: %w", f.Path, err)
	}
	return nil
}

// Outline returns the file without its network, a few kilobytes. Its operators have shapes and parameters and cannot be
// applied.
func (f *File) Outline() *File {
	return &File{
		Path: f.Path, SHA256: f.SHA256, Doc: f.Doc, Parameters: f.Parameters,
		opset: f.opset, multipleOf: f.multipleOf, x: f.x, y: f.y, draw: f.draw, std: f.std, scalars: f.scalars,
	}
}

// MarshalJSON returns the digest, which identifies the operator in keys.
func (f *File) MarshalJSON() ([]byte, error) { return strconv.AppendQuote(nil, f.SHA256), nil }

// bind finds the ports and reads the metadata.
func (f *File) bind(m *modelfile.Model) error {
	if f.opset < onnx.MinOpset || f.opset > onnx.MaxOpset {
		return fmt.Errorf("operator set %d is outside %d..%d; export it again with a supported one", f.opset, onnx.MinOpset, onnx.MaxOpset)
	}
	card := m.Metadata()
	if kind := card[cardPrefix+"kind"]; kind != "" && kind != "operator" {
		return fmt.Errorf("its metadata entry ddiff.kind is %q, want operator", kind)
	}
	if r := card[cardPrefix+"range"]; r != "" && r != "-1..1" {
		return fmt.Errorf("its metadata entry ddiff.range is %q, want -1..1; scale x inside the operator", r)
	}
	f.Doc = card[cardPrefix+"doc"]
	outputs := m.Outputs()
	if len(outputs) != 1 || outputs[0].Name != portY {
		return fmt.Errorf("its outputs are %s, want y alone; export it without others, such as the gradient gx and its input w", portNames(outputs))
	}
	f.y = outputs[0]
	if f.y.DType != onnx.Float || len(f.y.Dims) < 2 || len(f.y.Dims) > 4 {
		return fmt.Errorf("its output y has the shape %s, want float32 with 2 to 4 dimensions, the batch first", f.y.Text())
	}
	if err := f.bindInputs(m); err != nil {
		return err
	}
	if err := f.readMultiple(card); err != nil {
		return err
	}
	if err := f.readDraw(card); err != nil {
		return err
	}
	return f.readParameters(card)
}

// bindInputs finds x, the kernel and the numbers among the inputs.
func (f *File) bindInputs(m *modelfile.Model) error {
	inputs := m.Inputs()
	found := false
	for _, p := range inputs {
		if p.DType != onnx.Float {
			return fmt.Errorf("its input %s is not float32; convert it inside the operator", p.Name)
		}
		switch {
		case p.Name == portImage:
			f.x, found = p, true
		case len(p.Dims) == 0 || len(p.Dims) == 1 && p.Dims[0] == 1:
			f.scalars = append(f.scalars, p)
		case f.draw != nil:
			return fmt.Errorf("its inputs %s and %s differ from item to item, at most one may; put the other into the file as a constant", f.draw.Name, p.Name)
		default:
			f.draw = &p
		}
	}
	switch {
	case !found || len(f.x.Dims) != 4:
		return fmt.Errorf("its inputs are %s, want an image batch x [N, channels, height, width]", portNames(inputs))
	case f.x.Dims[1] < 1:
		return fmt.Errorf("the channels of x are free in %s; export it with a number", f.x.Text())
	}
	for _, p := range []*modelfile.Port{&f.x, &f.y, f.draw} {
		// One image at a time is fine, and a free batch then means nothing.
		if p != nil && p.Dims[0] >= 0 && (p.Dims[0] != 1 || f.x.Dims[0] != 1) {
			return fmt.Errorf("the batch of %s is %d in %s; export it with a free batch, or x with a batch of 1", p.Name, p.Dims[0], p.Text())
		}
	}
	return nil
}

func portNames(ports []modelfile.Port) string {
	var out []string
	for _, p := range ports {
		out = append(out, p.Name)
	}
	return strings.Join(out, ", ")
}

// readMultiple reads ddiff.multiple_of.
func (f *File) readMultiple(card map[string]string) (err error) {
	f.multipleOf = 1
	if text := card[cardPrefix+"multiple_of"]; text != "" {
		if f.multipleOf, err = strconv.Atoi(text); err != nil || f.multipleOf < 1 || f.multipleOf > maxSide {
			return fmt.Errorf("its metadata entry ddiff.multiple_of is %q, want a number from 1 to %d", text, maxSide)
		}
	}
	return nil
}

// readDraw reads the entries of the kernel.
func (f *File) readDraw(card map[string]string) error {
	name, std := card[cardPrefix+"parameter"], card[cardPrefix+"parameter_std"]
	if f.draw == nil {
		if name != "" {
			return fmt.Errorf("its metadata entry ddiff.parameter is %q, no input with a batch has this name", name)
		}
		return nil
	}
	if name != "" && name != f.draw.Name {
		return fmt.Errorf("its metadata entry ddiff.parameter is %q, the input with a batch beside x is %s", name, f.draw.Name)
	}
	f.std = 1
	if std != "" {
		var err error
		if f.std, err = strconv.ParseFloat(std, 64); err != nil || !(f.std > 0) || math.IsInf(f.std, 0) {
			return fmt.Errorf("its metadata entry ddiff.parameter_std is %q, want a number above 0", std)
		}
	}
	return nil
}

// The prefix of the entries that declare parameters.
const paramsPrefix = cardPrefix + "params."

// readParameters reads the declarations of the numbers among the inputs.
func (f *File) readParameters(card map[string]string) error {
	for _, p := range f.scalars {
		text, ok := card[paramsPrefix+p.Name]
		if !ok {
			return fmt.Errorf(`its input %s is a number without a metadata entry; add %s%s = "DEFAULT; [LEAST, LARGEST]; DOCUMENTATION"`,
				p.Name, paramsPrefix, p.Name)
		}
		d, err := declaration(p.Name, text)
		if err != nil {
			return fmt.Errorf("its metadata entry %s%s is %q: %w", paramsPrefix, p.Name, text, err)
		}
		f.Parameters = append(f.Parameters, d)
	}
	for key := range card {
		name, ok := strings.CutPrefix(key, paramsPrefix)
		if ok && !slices.ContainsFunc(f.scalars, func(p modelfile.Port) bool { return p.Name == name }) {
			return fmt.Errorf("its metadata entry %s declares a parameter, no input of rank 0 has this name", key)
		}
	}
	return nil
}

// declaration parses "DEFAULT; RANGE; DOC".
func declaration(name, text string) (parameter.Parameter, error) {
	parts := strings.SplitN(text, ";", 3)
	if len(parts) < 2 {
		return parameter.Parameter{}, fmt.Errorf(`want "DEFAULT; RANGE; DOC", as in "1.2; (0, 8]; gain of the sensor"`)
	}
	p, err := parameter.ParseRange(strings.TrimSpace(parts[1]))
	if err != nil {
		return p, err
	}
	p.Name = name
	if len(parts) == 3 {
		p.Doc = strings.TrimSpace(parts[2])
	}
	if p.Default, err = strconv.ParseFloat(strings.TrimSpace(parts[0]), 64); err != nil {
		return p, fmt.Errorf("the default %q is not a number", strings.TrimSpace(parts[0]))
	}
	if err := p.Test(p.Start()); err != nil {
		return p, fmt.Errorf("the default %w", err)
	}
	return p, nil
}
