package prior

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"ddiff/internal/failure"
	"ddiff/internal/regular"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/restore/onnx"
)

// ErrBundle: the card of a latent prior's bundle is missing or invalid, or its parts do not match it or each other.
var ErrBundle = failure.New(failure.Prior, "bundle")

// CardName is the name of the card in a bundle's folder.
const CardName = "bundle.json"

// The kinds of first stages.
const (
	VQ = "vq" // the latents are quantised before they are decoded
	KL = "kl" // the encoder returns the mean of the latents
)

// BundleCard is the content of bundle.json, the card of a latent prior, which consists of several files.
type BundleCard struct {
	Card     int    `json:"card"` // 1
	Kind     string `json:"kind"` // "latent"
	Name     string `json:"name"`
	License  string `json:"license"`
	Training string `json:"training,omitempty"`
	// FirstStage is VQ or KL. Default: VQ.
	FirstStage string `json:"first_stage,omitempty"`
	// Class is the class for which the network was exported, empty for none.
	Class      string     `json:"class,omitempty"`
	Prediction Prediction `json:"prediction"`
	Schedule   string     `json:"schedule"`
	Range      string     `json:"range"`       // of images, "-1..1"
	Channels   int        `json:"channels"`    // of images
	Latent     int        `json:"latent"`      // channels of latents
	Factor     int        `json:"factor"`      // image side over latent side
	MultipleOf int        `json:"multiple_of"` // of image sides
	// Scale is the factor between the autoencoder's latents and the network's. The files include it: the encoder
	// multiplies by it, the decoder divides.
	Scale float64 `json:"scale"`
	// Files maps roles to parts.
	Files map[string]BundleFile `json:"files"`
}

// BundleFile is a part of a bundle, beside bundle.json.
type BundleFile struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
}

// The parts of a bundle.
const (
	encoderRole   = "encoder"
	quantizerRole = "quantizer"
	decoderRole   = "decoder"
	unetRole      = "unet"
)

// Role is the purpose of a part of a bundle and the names of its inputs and of its output.
type Role struct {
	Name   string
	Inputs []string
	Output string
}

// Roles returns the parts of the bundle in the order of an evaluation. Decoding runs the quantizer, if there is one, then
// the decoder.
func (c *BundleCard) Roles() []Role {
	all := []Role{
		{encoderRole, []string{"x"}, "z"}, {quantizerRole, []string{"z"}, "q"}, {decoderRole, []string{"z"}, "x"}, {unetRole, []string{"z", "t"}, "eps"},
	}
	if c.FirstStage == KL {
		return slices.Delete(all, 1, 2)
	}
	return all
}

// ParseBundleCard parses and checks a bundle.json; file names it in messages. The error wraps ErrBundle.
func ParseBundleCard(file string, data []byte) (*BundleCard, error) {
	c := &BundleCard{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrBundle, file, err)
	}
	if c.FirstStage == "" {
		c.FirstStage = VQ
	}
	if problem := c.problem(); problem != "" {
		return nil, fmt.Errorf("%w %s: %s", ErrBundle, file, problem)
	}
	return c, nil
}

// problem describes the first invalid field.
func (c *BundleCard) problem() string {
	_, scheduleErr := ParseSchedule(c.Schedule)
	for _, w := range []struct {
		invalid bool
		problem string
	}{
		{c.Card != 1, "card: want 1"},
		{c.Kind != "latent", "kind: want latent"},
		{c.Name == "", "name is missing"},
		{c.License == "", "license is missing"},
		{c.FirstStage != VQ && c.FirstStage != KL, "first_stage: want vq or kl"},
		{c.Prediction.problem(c.Schedule) != "", "prediction: " + c.Prediction.problem(c.Schedule)},
		{scheduleErr != nil, fmt.Sprintf("schedule: %v", scheduleErr)},
		{c.Range != "-1..1", "range: only -1..1 is supported"},
		{c.Channels != 1 && c.Channels != 3, "channels: want 1 or 3"},
		{c.Latent < 1 || c.Latent > 1024, "latent: want 1 to 1024 channels"},
		{c.Factor < 1 || c.MultipleOf < 1 || c.MultipleOf > 1024 || c.MultipleOf%c.Factor != 0, "multiple_of must be a multiple of factor, at most 1024"},
		{!(c.Scale > 0), "scale must be positive: the factor between the autoencoder's latents and the network's, 1 for none"},
	} {
		if w.invalid {
			return w.problem
		}
	}
	for _, r := range c.Roles() {
		f, ok := c.Files[r.Name]
		switch {
		case !ok && r.Name == quantizerRole:
			return "files: quantizer is missing, which the first stage vq needs; write \"first_stage\": \"kl\" if there is none"
		case f.File == "" || filepath.Base(f.File) != f.File || f.File == CardName:
			return fmt.Sprintf("files: %s must name a file in the same folder", r.Name)
		}
	}
	if _, ok := c.Files[quantizerRole]; ok && c.FirstStage == KL {
		return "files: quantizer is given, which the first stage kl has not; remove it, or write \"first_stage\": \"vq\""
	}
	return ""
}

// card describes the prior of the bundle.
func (c *BundleCard) card() Card {
	return Card{
		Name: c.Name, Prediction: c.Prediction, Schedule: c.Schedule, Range: c.Range, Channels: c.Channels, MultipleOf: c.MultipleOf,
		License: c.License, Training: c.Training,
		Latent: &Latent{FirstStage: c.FirstStage, Channels: c.Latent, Factor: c.Factor, Scale: c.Scale, Class: c.Class},
	}
}

// loadBundle loads the prior in an archive that Read returned. The messages name parts as FILE/PART.
func loadBundle(file string, data []byte, dir string) (*Prior, error) {
	c, parts, err := unpack(file, data)
	if err != nil {
		return nil, err
	}
	models := map[string]*modelfile.Model{}
	opset := 0
	for _, r := range c.Roles() {
		name := filepath.Join(file, c.Files[r.Name].File)
		model, err := modelfile.ReadModelBeside(parts[r.Name], dir)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrBundle, name, err)
		}
		if err := c.checkPorts(r, model); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrBundle, name, err)
		}
		if opset == 0 {
			opset = model.Opset()
		}
		if o := model.Opset(); o != opset {
			return nil, fmt.Errorf("%w: %s has the operator set %d, the %s %d; export all parts with one operator set", ErrBundle, name, o, encoderRole, opset)
		}
		models[r.Name] = model.Pruned(r.Output)
	}
	schedule, err := ParseSchedule(c.Schedule)
	if err != nil {
		return nil, fmt.Errorf("%w %s: schedule: %w", ErrBundle, file, err)
	}
	p := &Prior{
		Description: Description{Card: c.card(), Schedule: schedule, SHA256: regular.SHA256(data), File: file},
		file:        models[unetRole], parts: models,
	}
	if err = p.bind(); err == nil {
		err = p.discretise()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrBundle, filepath.Join(file, c.Files[unetRole].File), err)
	}
	p.fused = fused(p.file)
	n, h, w := p.smallest()
	if err := p.Space().gradient(p.Opset(), []int{n, c.Channels, h, w}); err != nil {
		p.Card.Latent.NoGradient = err.Error()
	}
	return p, nil
}

// checkPorts checks the names, types and channels of a part's inputs and output.
func (c *BundleCard) checkPorts(r Role, m *modelfile.Model) error {
	channels := map[string]int{"x": c.Channels, "z": c.Latent, "q": c.Latent, "eps": c.Latent}
	in, out := names(m.Inputs()), names(m.Outputs())
	if slices.Sort(in); !slices.Equal(in, slices.Sorted(slices.Values(r.Inputs))) {
		return fmt.Errorf("%w: it has the inputs %v, want %v", ErrGraph, in, r.Inputs)
	}
	if !slices.Contains(out, r.Output) {
		return fmt.Errorf("%w: it has the outputs %v, want [%s]", ErrGraph, out, r.Output)
	}
	for _, p := range slices.Concat(m.Inputs(), m.Outputs()) {
		want, ok := channels[p.Name]
		if !ok {
			continue
		}
		if p.DType != onnx.Float {
			return fmt.Errorf("%w: %s is not float32", ErrGraph, p.Name)
		}
		if len(p.Dims) == 4 && p.Dims[1] >= 0 && p.Dims[1] != want {
			return fmt.Errorf("%s has %d channels, want %d according to the card", p.Name, p.Dims[1], want)
		}
	}
	return nil
}

func names(ports []modelfile.Port) (all []string) {
	for _, p := range ports {
		all = append(all, p.Name)
	}
	return all
}
