package check

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"ddiff/internal/regular"
	"ddiff/restore/noise"
	"ddiff/restore/onnx"
	"ddiff/restore/prior"
	"ddiff/restore/raster"
)

// BundleCard is the content of bundle.json, the card of a latent prior, which consists of several files.
type BundleCard struct {
	Card       int              `json:"card"` // 1
	Kind       string           `json:"kind"` // "latent"
	Name       string           `json:"name"`
	License    string           `json:"license"`
	Training   string           `json:"training,omitempty"`
	Prediction prior.Prediction `json:"prediction"`
	Schedule   string           `json:"schedule"`
	Range      string           `json:"range"`       // of images, "-1..1"
	Channels   int              `json:"channels"`    // of images
	Latent     int              `json:"latent"`      // channels of latents
	Factor     int              `json:"factor"`      // image side over latent side
	MultipleOf int              `json:"multiple_of"` // of image sides
	// Scale is the factor from the encoder's latents to the network's.
	Scale float64 `json:"scale"`
	// Files maps roles to parts.
	Files map[string]BundleFile `json:"files"`
}

// BundleFile is a part of a bundle, beside bundle.json.
type BundleFile struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
}

// roles are the parts of a bundle with their inputs and outputs. Decoding with quantisation runs quantizer, then decoder.
var roles = []struct {
	name    string
	inputs  []string
	outputs []string
}{
	{"encoder", []string{"x"}, []string{"z"}},
	{"quantizer", []string{"z"}, []string{"q"}},
	{"decoder", []string{"z"}, []string{"x"}},
	{"unet", []string{"z", "t"}, []string{"eps"}},
}

// BundleOptions configure the check of a bundle.
type BundleOptions struct {
	// Size is the side of the images in pixels, rounded up to the card's multiple_of. Default: 256.
	Size int
	// Limits bound the deviation from the vectors. Default: DefaultLimits.
	Limits Limits
}

// PartReport is the result of checking a part.
type PartReport struct {
	Role       string     `json:"role"`
	File       string     `json:"file"`
	Parameters int        `json:"parameters"`
	MSPerCall  float64    `json:"ms_per_call"`
	Vectors    *Agreement `json:"vectors,omitempty"`
}

// BundleReport is the result of checking a bundle.
type BundleReport struct {
	Kind      string       `json:"kind"`
	Directory string       `json:"directory"`
	Name      string       `json:"name"`
	Image     []int        `json:"image"`
	Latent    []int        `json:"latent"`
	Parts     []PartReport `json:"parts"`
	Noise     []NoiseRow   `json:"noise"`
	PeakMiB   float64      `json:"peak_mib"`
}

// OK reports whether all parts agree with their vectors.
func (r *BundleReport) OK() bool {
	return !slices.ContainsFunc(r.Parts, func(p PartReport) bool { return p.Vectors != nil && !p.Vectors.OK })
}

// ReadBundleCard reads bundle.json in dir. ErrBundle: it is missing or invalid.
func ReadBundleCard(dir string) (*BundleCard, error) {
	path := filepath.Join(dir, "bundle.json")
	data, err := regular.Read(path, regular.MaxConfigBytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBundle, err)
	}
	c := &BundleCard{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrBundle, path, err)
	}
	_, scheduleErr := prior.ParseSchedule(c.Schedule)
	for _, w := range []struct {
		invalid bool
		problem string
	}{
		{c.Card != 1, "card: want 1"},
		{c.Kind != "latent", "kind: want latent"},
		{c.Name == "", "name is missing"},
		{c.License == "", "license is missing"},
		{!slices.Contains([]prior.Prediction{prior.Epsilon, prior.Sample, prior.Velocity}, c.Prediction), "prediction: want epsilon, sample or velocity"},
		{scheduleErr != nil, fmt.Sprintf("schedule: %v", scheduleErr)},
		{c.Range != "-1..1", "range: only -1..1 is supported"},
		{c.Channels < 1 || c.Latent < 1, "channels and latent must be positive"},
		{c.Factor < 1 || c.MultipleOf < 1 || c.MultipleOf%c.Factor != 0, "multiple_of must be a multiple of factor"},
		{!(c.Scale > 0), "scale must be positive"},
	} {
		if w.invalid {
			return nil, fmt.Errorf("%w %s: %s", ErrBundle, path, w.problem)
		}
	}
	for _, r := range roles {
		f := c.Files[r.name]
		if f.File == "" || filepath.Base(f.File) != f.File {
			return nil, fmt.Errorf("%w %s: files: %s must name a file in the same folder", ErrBundle, path, r.name)
		}
	}
	return c, nil
}

// bundle is a bundle with its parts loaded.
type bundle struct {
	dir   string
	card  *BundleCard
	parts map[string]*network
}

func openBundle(ctx context.Context, dir string) (*bundle, error) {
	c, err := ReadBundleCard(dir)
	if err != nil {
		return nil, err
	}
	b := &bundle{dir: dir, card: c, parts: map[string]*network{}}
	for _, r := range roles {
		f := c.Files[r.name]
		path := filepath.Join(dir, f.File)
		sum, err := regular.Digest(ctx, path, onnx.MaxFileBytes)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrBundle, r.name, err)
		}
		if sum != f.SHA256 {
			return nil, fmt.Errorf("%w %s: %s was altered: its SHA-256 differs from bundle.json; export the bundle again", ErrBundle, dir, f.File)
		}
		data, err := onnx.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBundle, err)
		}
		n, err := newNetwork(path, data)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBundle, err)
		}
		for _, name := range r.inputs {
			if _, ok := n.input(name); !ok || len(n.inputs) != len(r.inputs) {
				return nil, fmt.Errorf("%w: %w: %s has the inputs %v, want %v", ErrBundle, ErrInterface, path, names(n.inputs), r.inputs)
			}
		}
		if _, ok := n.output(r.outputs[0]); !ok {
			return nil, fmt.Errorf("%w: %w: %s has the outputs %v, want %v", ErrBundle, ErrInterface, path, names(n.outputs), r.outputs)
		}
		b.parts[r.name] = n
	}
	return b, nil
}

// Bundle checks the parts of the latent prior in dir and their shapes together. Errors are ErrBundle, ErrInterface,
// ErrVectors and ErrNotFinite; deviations from the vectors are in the report.
func Bundle(ctx context.Context, rt *onnx.Runtime, dir string, o BundleOptions) (*BundleReport, error) {
	b, err := openBundle(ctx, dir)
	if err != nil {
		return nil, err
	}
	c := b.card
	size := imageSize(o.Size, c.MultipleOf)
	r := &BundleReport{
		Kind: "bundle", Directory: dir, Name: c.Name,
		Image: []int{1, c.Channels, size, size}, Latent: []int{1, c.Latent, size / c.Factor, size / c.Factor},
	}
	times, err := b.runChain(ctx, rt, r)
	if err != nil {
		return nil, err
	}
	if err := b.runNoise(ctx, rt, r, times); err != nil {
		return nil, err
	}
	for _, role := range roles {
		n := b.parts[role.name]
		p := PartReport{Role: role.name, File: c.Files[role.name].File, Parameters: n.parameters, MSPerCall: times[role.name].median()}
		if p.Vectors, err = n.checkVectors(ctx, rt, "", o.Limits); err != nil {
			return nil, err
		}
		r.Parts = append(r.Parts, p)
	}
	r.PeakMiB = float64(PeakMiB())
	return r, nil
}

// runChain runs an image through encoder, quantizer and decoder, and returns the durations by role.
func (b *bundle) runChain(ctx context.Context, rt *onnx.Runtime, r *BundleReport) (map[string]durations, error) {
	value := &raster.Array{Shape: r.Image, Data: smooth(r.Image)}
	times := map[string]durations{}
	for _, step := range []struct {
		role string
		want []int
	}{{"encoder", r.Latent}, {"quantizer", r.Latent}, {"decoder", r.Image}} {
		n := b.parts[step.role]
		in, out := n.inputs[0].Name, n.outputs[0].Name
		got, took, err := n.run(ctx, rt, map[string]*raster.Array{in: value}, []string{out})
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrBundle, step.role, err)
		}
		if value = got[out]; !slices.Equal(value.Shape, step.want) {
			return nil, fmt.Errorf("%w %s: %s returns the shape %v, want %v according to the card", ErrBundle, b.dir, step.role, value.Shape, step.want)
		}
		times[step.role] = append(times[step.role], took)
	}
	return times, nil
}

// runNoise runs the network on pure noise at five time indices.
func (b *bundle) runNoise(ctx context.Context, rt *onnx.Runtime, r *BundleReport, times map[string]durations) error {
	schedule, err := prior.ParseSchedule(b.card.Schedule)
	if err != nil {
		return fmt.Errorf("%w: schedule: %w", ErrBundle, err)
	}
	n := b.parts["unet"]
	key := noise.NewKey([32]byte([]byte("ddiff prior check: fixed noise..")))
	z := &raster.Array{Shape: r.Latent, Data: make([]float32, product(r.Latent))}
	t := &raster.Array{Shape: []int{1}, Data: []float32{0}}
	run, err := n.open(rt, map[string]*raster.Array{"z": z, "t": t}, []string{"eps"}, nil)
	if err != nil {
		return fmt.Errorf("%w: unet: %w", ErrBundle, err)
	}
	defer run.close()
	eps := make([]float32, len(z.Data))
	for _, f := range []float64{0, 0.1, 0.5, 0.9, 1} {
		at := int(f * float64(schedule.Steps()-1))
		a := schedule.AlphaBar[at]
		noise.Normal(eps, key, noise.Step, uint32(at), 1)
		copy(z.Data, eps)
		t.Data[0] = float32(at)
		run.set(map[string]*raster.Array{"z": z, "t": t})
		begin := time.Now()
		got, err := run.run(ctx)
		if err != nil {
			return fmt.Errorf("%w: unet: %w", ErrBundle, err)
		}
		times["unet"] = append(times["unet"], time.Since(begin))
		out := got["eps"]
		if !slices.Equal(out.Shape, r.Latent) {
			return fmt.Errorf("%w %s: unet returns the shape %v, want %v according to the card", ErrBundle, b.dir, out.Shape, r.Latent)
		}
		mean, std := moments(out.Data)
		r.Noise = append(r.Noise, NoiseRow{T: at, AlphaBar: a, Mean: mean, Std: std, MSE: meanSquare(out.Data, eps)})
	}
	return nil
}
