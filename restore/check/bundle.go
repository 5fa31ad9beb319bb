package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ddiff/restore/noise"
	"ddiff/restore/onnx"
	"ddiff/restore/prior"
	"ddiff/restore/raster"
)

// BundleCard is bundle.json: the card of a latent prior, which consists of several files.
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
	// Scale is what the network's latents are, as a multiple of the encoder's.
	Scale float64 `json:"scale"`
	// Files are the parts by role.
	Files map[string]BundleFile `json:"files"`
}

// BundleFile is a part of a bundle.
type BundleFile struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
}

// The roles of a bundle's parts, with their inputs and outputs. To decode with quantisation
// is to go through quantizer and decoder.
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

// BundleOptions say how to check a bundle.
type BundleOptions struct {
	// Size is the side of the images in pixels, raised to a multiple. Default: 256.
	Size int
	// Limits are for the vectors. Default: DefaultLimits.
	Limits Limits
}

// PartReport is what was found out about a part.
type PartReport struct {
	Role       string     `json:"role"`
	File       string     `json:"file"`
	Parameters int        `json:"parameters"`
	MSPerCall  float64    `json:"ms_per_call"`
	Vectors    *Agreement `json:"vectors,omitempty"`
}

// BundleReport is what was found out about a bundle.
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

// OK tells whether no part contradicts its vectors.
func (r *BundleReport) OK() bool {
	return !slices.ContainsFunc(r.Parts, func(p PartReport) bool { return p.Vectors != nil && !p.Vectors.OK })
}

// ReadBundleCard reads bundle.json of a folder. ErrBundle wraps what is wrong with it.
func ReadBundleCard(dir string) (*BundleCard, error) {
	path := filepath.Join(dir, "bundle.json")
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBundle, err)
	}
	c := &BundleCard{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrBundle, path, err)
	}
	_, scheduleErr := prior.ParseSchedule(c.Schedule)
	for _, w := range []struct {
		wrong bool
		what  string
	}{
		{c.Card != 1, "card: this version reads 1"},
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
		if w.wrong {
			return nil, fmt.Errorf("%w %s: %s", ErrBundle, path, w.what)
		}
	}
	for _, r := range roles {
		f := c.Files[r.name]
		if f.File == "" || filepath.Base(f.File) != f.File {
			return nil, fmt.Errorf("%w %s: files: %s must name a file beside it", ErrBundle, path, r.name)
		}
	}
	return c, nil
}

// bundle is a bundle whose parts were read.
type bundle struct {
	dir   string
	card  *BundleCard
	parts map[string]*network
}

func openBundle(dir string) (*bundle, error) {
	c, err := ReadBundleCard(dir)
	if err != nil {
		return nil, err
	}
	b := &bundle{dir: dir, card: c, parts: map[string]*network{}}
	for _, r := range roles {
		f := c.Files[r.name]
		path := filepath.Join(dir, f.File)
		plain, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrBundle, r.name, err)
		}
		if digest(plain) != f.SHA256 {
			return nil, fmt.Errorf("%w %s: %s was altered: another SHA-256 than bundle.json says; export the bundle again", ErrBundle, dir, f.File)
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
				return nil, fmt.Errorf("%w: %w: %s has the inputs %v, want %v", ErrBundle, ErrInterface, path, named(n.inputs), r.inputs)
			}
		}
		if _, ok := n.output(r.outputs[0]); !ok {
			return nil, fmt.Errorf("%w: %w: %s has the outputs %v, want %v", ErrBundle, ErrInterface, path, named(n.outputs), r.outputs)
		}
		b.parts[r.name] = n
	}
	return b, nil
}

// Bundle checks the parts of a latent prior and that they fit each other.
func Bundle(ctx context.Context, rt *onnx.Runtime, dir string, o BundleOptions) (*BundleReport, error) {
	b, err := openBundle(dir)
	if err != nil {
		return nil, err
	}
	if o.Size == 0 {
		o.Size = 256
	}
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	c := b.card
	size := (o.Size + c.MultipleOf - 1) / c.MultipleOf * c.MultipleOf
	r := &BundleReport{
		Kind: "bundle", Directory: dir, Name: c.Name,
		Image: []int{1, c.Channels, size, size}, Latent: []int{1, c.Latent, size / c.Factor, size / c.Factor},
	}
	times, err := b.chain(ctx, rt, r)
	if err != nil {
		return nil, err
	}
	if err := b.noise(ctx, rt, r, times); err != nil {
		return nil, err
	}
	for _, role := range roles {
		n := b.parts[role.name]
		p := PartReport{Role: role.name, File: c.Files[role.name].File, Parameters: n.parameters, MSPerCall: times[role.name].middle()}
		if p.Vectors, err = n.beside(ctx, rt, "", o.Limits); err != nil {
			return nil, err
		}
		r.Parts = append(r.Parts, p)
	}
	r.PeakMiB = float64(PeakMiB())
	return r, nil
}

// chain sends an image through encoder, quantizer and decoder.
func (b *bundle) chain(ctx context.Context, rt *onnx.Runtime, r *BundleReport) (map[string]durations, error) {
	value := &raster.Array{Shape: r.Image, Data: smooth(r.Image)}
	times := map[string]durations{}
	for _, step := range []struct {
		role string
		want []int
	}{{"encoder", r.Latent}, {"quantizer", r.Latent}, {"decoder", r.Image}} {
		n := b.parts[step.role]
		in, out := n.inputs[0].name, n.outputs[0].name
		got, took, err := n.run(ctx, rt, map[string]*raster.Array{in: value}, []string{out})
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrBundle, step.role, err)
		}
		if value = got[out]; !slices.Equal(value.Shape, step.want) {
			return nil, fmt.Errorf("%w %s: %s gives the shape %v, the card says %v", ErrBundle, b.dir, step.role, value.Shape, step.want)
		}
		times[step.role] = append(times[step.role], took)
	}
	return times, nil
}

// noise asks the network about pure noise.
func (b *bundle) noise(ctx context.Context, rt *onnx.Runtime, r *BundleReport, times map[string]durations) error {
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
			return fmt.Errorf("%w %s: unet gives the shape %v, the card says %v", ErrBundle, b.dir, out.Shape, r.Latent)
		}
		mean, std := moments(out.Data)
		r.Noise = append(r.Noise, NoiseRow{T: at, AlphaBar: a, Mean: mean, Std: std, MSE: meanSquare(out.Data, eps)})
	}
	return nil
}

// beside compares with the given vectors, or those beside the file; nil without any.
func (n *network) beside(ctx context.Context, rt *onnx.Runtime, path string, l Limits) (*Agreement, error) {
	if path == "" {
		path = VectorsBeside(n.file)
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
	}
	v, err := ReadVectors(path, named(n.outputs))
	if err != nil {
		return nil, err
	}
	return n.agree(ctx, rt, v, l)
}
