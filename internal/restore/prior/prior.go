package prior

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"ddiff/internal/failure"
	"ddiff/internal/regular"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/trial"
	"ddiff/restore/onnx"
)

// ErrGraph: the network's inputs or outputs are not those of a score model.
var ErrGraph = failure.New(failure.Prior, "not a score model")

// Description is a score model without its network, a few kilobytes.
type Description struct {
	Card     Card
	Schedule Schedule
	SHA256   string // hex digest of the file
	File     string // path, Bundled or Base
}

// Prior is a score model that can be built into a solver graph.
type Prior struct {
	Description

	file   *modelfile.Model
	fused  func() *modelfile.Model // the network on OpenVINO: file, or the same function with fewer passes over the image
	x, t   modelfile.Port
	output string
	parts  map[string]*modelfile.Model // of a bundle by role; nil for a prior that works on pixels
	first  trial.First
	values sync.Map // the results of Values by height and width
	graph  bool     // see Form.Graph

	formsMu sync.Mutex
	forms   map[Form]*Prior // the results of InForm
	choice  sync.Mutex      // held while forms are timed
}

// Open reads and loads the prior at path, which may be Bundled or Base.
func Open(path string) (*Prior, error) {
	data, err := Read(path)
	dir := "" // of the data files
	if errors.Is(err, regular.ErrTooLarge) {
		data, err = read(path, modelfile.ReadMapped)
		if dir = path; !isArchive(data) {
			dir = filepath.Dir(path)
		}
	}
	if err != nil {
		return nil, err
	}
	return load(path, data, dir)
}

// Read returns the bytes of the prior at path, which may be Bundled or Base, with external data inlined; see modelfile.ReadFile. The
// folder of a bundle gives the archive with which the bundle travels; a tar archive of one travels as it is, with its own digest.
// regular.ErrTooLarge: all files together exceed 2 GiB, which only Open takes.
func Read(path string) ([]byte, error) { return read(path, modelfile.ReadFile) }

func read(path string, file func(path string) ([]byte, error)) ([]byte, error) {
	switch path {
	case Bundled:
		return bundled, nil
	case Base:
		return readBase()
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return readBundle(path, file)
	}
	if strings.EqualFold(filepath.Ext(path), ".tar") {
		data, err := regular.Read(path, modelfile.MaxFileBytes)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBundle, err)
		}
		return data, nil
	}
	return file(path)
}

// Load parses a prior that Read returned and checks its card (ErrCard), the graph's interface (ErrGraph) and their
// agreement, and those of a bundle's parts (ErrBundle). file names the prior in messages.
func Load(file string, data []byte) (*Prior, error) { return load(file, data, "") }

// load is Load for a prior whose data files may be in a folder.
func load(file string, data []byte, dir string) (*Prior, error) {
	var p *Prior
	var err error
	if isArchive(data) {
		p, err = loadBundle(file, data, dir)
	} else {
		p, err = loadNetwork(file, data, dir)
	}
	if err != nil {
		return nil, err
	}
	p.first.Data, p.first.Dir = data, dir
	return p, nil
}

func loadNetwork(file string, data []byte, dir string) (*Prior, error) {
	m, err := modelfile.ReadModelBeside(data, dir)
	if err != nil {
		return nil, fmt.Errorf("prior %s: %w", file, err)
	}
	card, err := ParseCard(file, m.Metadata())
	if err != nil {
		return nil, fmt.Errorf("prior %w", err)
	}
	schedule, err := ParseSchedule(card.Schedule)
	if err != nil {
		return nil, fmt.Errorf("prior %s: %w: schedule: %w", file, ErrCard, err)
	}
	p := &Prior{Description: Description{Card: card, Schedule: schedule, SHA256: regular.SHA256(data), File: file}, file: m}
	if err = p.bind(); err == nil {
		err = p.discretise()
	}
	if err != nil {
		return nil, fmt.Errorf("prior %s: %w", file, err)
	}
	p.fused = fused(p.file)
	return p, nil
}

// fused rewrites a network for OpenVINO when it is asked for.
func fused(m *modelfile.Model) func() *modelfile.Model {
	return sync.OnceValue(func() *modelfile.Model {
		f, _ := m.FuseGroupNorm()
		return f
	})
}

// bind finds the image and the time input and checks the card against the graph.
func (p *Prior) bind() error {
	if o := p.file.Opset(); o < onnx.MinOpset || o > onnx.MaxOpset {
		return fmt.Errorf("%w: operator set %d is outside %d..%d; export the network again with a supported one", ErrGraph, o, onnx.MinOpset, onnx.MaxOpset)
	}
	in, out := p.file.Inputs(), p.file.Outputs()
	if len(in) != 2 || len(out) < 1 {
		return fmt.Errorf("%w: it has %d inputs and %d outputs, want the inputs image and time and a prediction", ErrGraph, len(in), len(out))
	}
	p.x, p.t = in[0], in[1]
	if len(p.x.Dims) != 4 {
		p.x, p.t = in[1], in[0]
	}
	if len(p.x.Dims) != 4 || p.x.DType != onnx.Float {
		return fmt.Errorf("%w: no input is a float image batch of rank 4", ErrGraph)
	}
	if len(p.t.Dims) != 1 || (p.t.DType != onnx.Int64 && p.t.DType != onnx.Float) {
		return fmt.Errorf("%w: input %s is not a time of type int64 or float with shape [batch]", ErrGraph, p.t.Name)
	}
	p.output = out[0].Name
	p.file = p.file.Pruned(p.output)
	if d := p.x.Dims; (d[2] > 0 || d[3] > 0) && !p.free() {
		p.Card.Fixed = [2]int{max(0, d[2]) * p.factor(), max(0, d[3]) * p.factor()}
	}
	if c := p.x.Dims[1]; c >= 0 && c != p.channels() {
		return fmt.Errorf("%w: channels is %d, the graph's input %s has %d", ErrCard, p.channels(), p.x.Name, c)
	}
	if len(out[0].Dims) == 4 {
		if c := out[0].Dims[1]; c >= 0 && c != p.predicted() {
			return fmt.Errorf("%w: %d output channels expected (channels %d, learned_variance %v), the graph has %d",
				ErrCard, p.predicted(), p.channels(), p.Card.LearnedVariance, c)
		}
	}
	return nil
}

// free reports whether the operations of a network take other sizes than the one that its file declares, as those of many exports without free axes do.
func (p *Prior) free() bool {
	n, h, w := p.smallest()
	f := p.factor()
	x := []int{n, p.channels(), (h + p.Card.MultipleOf) / f, (w + p.Card.MultipleOf) / f}
	types, err := p.file.Types(map[string][]int{p.x.Name: x, p.t.Name: {n}})
	y := types[p.output].Dims
	return err == nil && len(y) == len(x) && slices.Equal(y[2:], x[2:])
}

// channels returns the number of channels of the prior's space.
func (p *Prior) channels() int {
	if p.Card.Latent != nil {
		return p.Card.Latent.Channels
	}
	return p.Card.Channels
}

// factor is the side of an image over that of a tensor of the prior's space.
func (p *Prior) factor() int {
	if p.Card.Latent != nil {
		return p.Card.Latent.Factor
	}
	return 1
}

// predicted returns the number of output channels.
func (p *Prior) predicted() int {
	if p.Card.LearnedVariance {
		return 2 * p.channels()
	}
	return p.channels()
}

// Opset returns the operator set that a graph needs to inline the prior.
func (p *Prior) Opset() int { return p.file.Opset() }

// Parameters returns the number of weights, of all parts of a bundle.
func (p *Prior) Parameters() int {
	if p.parts == nil {
		return p.file.Parameters()
	}
	n := 0
	for _, m := range p.parts {
		n += m.Parameters()
	}
	return n
}

// Width returns the network's number of channels at full resolution.
func (p *Prior) Width() int { return p.file.Width(p.channels()) }

// StageWidth returns the number of channels of the encoder at the resolution of images, 0 for a prior that works on pixels.
// The decoders of published autoencoders end with the same number.
func (p *Prior) StageWidth() int {
	if p.parts == nil {
		return 0
	}
	return p.parts[encoderRole].Width(p.Card.Channels)
}

// Predict adds the network to g for images or latents x [N, C, H, W] of the prior's space at the time index t (int64, shape
// [1], for the whole batch). The result has the shape of x; Predict drops a learned variance.
func (p *Prior) Predict(g *onnx.Graph, x, t onnx.Value) (onnx.Value, error) {
	return p.predict(g, p.file, x, t)
}

// predict is Predict with one form of the network.
func (p *Prior) predict(g *onnx.Graph, form *modelfile.Model, x, t onnx.Value) (onnx.Value, error) {
	n, h, w := x.Dims[0], x.Dims[2], x.Dims[3]
	kind := "image"
	if p.Card.Latent != nil {
		kind = "latent"
	}
	if m := p.Card.MultipleOf / p.factor(); h%m != 0 || w%m != 0 {
		return onnx.Value{}, fmt.Errorf("prior %s: %s of %d×%d: both sides must be a multiple of %d", p.File, kind, w, h, m)
	}
	if x.Dims[1] != p.channels() {
		return onnx.Value{}, fmt.Errorf("prior %s: %s of %d channels: the prior needs %d", p.File, kind, x.Dims[1], p.channels())
	}
	if g.Divided() {
		y, err := g.Evaluate(x, t, []int{n, p.channels(), h, w})
		if err != nil {
			err = fmt.Errorf("prior %s: %w", p.File, err)
		}
		return y, err
	}
	times := g.Expand(t, n)
	if p.t.DType == onnx.Float {
		times = g.Cast(times, onnx.Float)
	}
	out, err := g.Inline(form,
		map[string]onnx.Value{p.x.Name: x, p.t.Name: times},
		map[string][]int{p.output: {n, p.predicted(), h, w}})
	if err != nil {
		return onnx.Value{}, fmt.Errorf("prior %s: %w", p.File, err)
	}
	y := out[p.output]
	if p.Card.LearnedVariance {
		y = g.Slice(y, 1, 0, p.channels())
	}
	return y, nil
}
