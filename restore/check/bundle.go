package check

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"ddiff/restore/onnx/infer"
	"ddiff/restore/onnx/modelfile"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/prior"
	"ddiff/restore/raster"
)

// BundleOptions configure the check of a bundle.
type BundleOptions struct {
	// Size is the side of the images in pixels, rounded up to the card's multiple_of. Default: 256.
	Size int
	// Images are photographs of that size with the bundle's channels. Default: an image of slow waves.
	Images []*raster.Image
}

// PartReport is the result of checking a part.
type PartReport struct {
	Role       string     `json:"role"`
	File       string     `json:"file"`
	Parameters int        `json:"parameters"`
	MSPerCall  float64    `json:"ms_per_call"`
	Vectors    *Agreement `json:"vectors,omitempty"`
}

// Reconstruction compares decoded latents of images with the images.
type Reconstruction struct {
	// Images is the number of photographs; 0 for the image of slow waves.
	Images int `json:"images"`
	// PSNR is the mean over the images in dB, clipped to [−1, 1]; MaxAbs is the largest difference of a value.
	PSNR   float64 `json:"psnr"`
	MaxAbs float64 `json:"max_abs"`
}

// LatentStatistics describe the latents of images, which include the scale factor. A network for latents expects a standard
// deviation near 1.
type LatentStatistics struct {
	Mean float64 `json:"mean"`
	Std  float64 `json:"std"`
}

// BundleReport is the result of checking a bundle.
type BundleReport struct {
	Kind       string       `json:"kind"`
	Directory  string       `json:"directory"`
	SHA256     string       `json:"sha256"`
	Name       string       `json:"name"`
	FirstStage string       `json:"first_stage"`
	Class      string       `json:"class,omitempty"`
	Scale      float64      `json:"scale"`
	Image      []int        `json:"image"`
	Latent     []int        `json:"latent"`
	Parts      []PartReport `json:"parts"`
	Noise      []NoiseRow   `json:"noise"`
	// Reconstruction and Latents are of the same images.
	Reconstruction Reconstruction   `json:"reconstruction"`
	Latents        LatentStatistics `json:"latents"`
	// Gradient reports whether the decoder has a gradient; NoGradient names the operation without one.
	Gradient   bool    `json:"gradient"`
	NoGradient string  `json:"no_gradient,omitempty"`
	PeakMiB    float64 `json:"peak_mib"`
	// Warnings describe likely but uncertain defects.
	Warnings []string `json:"warnings,omitempty"`
}

// OK reports whether all parts agree with their vectors.
func (r *BundleReport) OK() bool {
	return !slices.ContainsFunc(r.Parts, func(p PartReport) bool { return p.Vectors != nil && !p.Vectors.OK })
}

// Bundle checks the parts of the latent prior in dir and their shapes together. Errors are prior.ErrBundle,
// prior.ErrGraph, ErrVectors and ErrNotFinite; deviations from the vectors are in the report.
func Bundle(ctx context.Context, rt *onnxruntime.Runtime, dir string, o BundleOptions) (*BundleReport, error) {
	p, err := prior.Open(dir)
	if err != nil {
		return nil, err
	}
	if _, err := p.Verify(ctx, rt); err != nil {
		return nil, err
	}
	c, latent := p.Card, p.Card.Latent
	if latent == nil {
		return nil, fmt.Errorf("%s: %w: the prior works on pixels", dir, prior.ErrBundle)
	}
	card, err := prior.ReadBundleCard(dir)
	if err != nil {
		return nil, err
	}
	size := imageSize(o.Size, c.MultipleOf)
	image := []int{1, c.Channels, size, size}
	r := &BundleReport{
		Kind: "bundle", Directory: dir, SHA256: p.SHA256, Name: c.Name, FirstStage: latent.FirstStage, Class: latent.Class, Scale: latent.Scale,
		Image: image, Latent: p.Space().Dims(image), Gradient: latent.NoGradient == "", NoGradient: latent.NoGradient,
	}
	b := bundle{dir: dir, card: card, times: map[string]durations{}}
	if err := b.runNoise(ctx, rt, p, r); err != nil {
		return nil, err
	}
	if err := b.reconstruct(ctx, rt, o.Images, r); err != nil {
		return nil, err
	}
	for _, role := range card.Roles() {
		n, err := b.open(role.Name)
		if err != nil {
			return nil, err
		}
		p := PartReport{Role: role.Name, File: card.Files[role.Name].File, Parameters: n.parameters, MSPerCall: b.times[role.Name].median()}
		if p.Vectors, err = n.checkVectors(ctx, rt); err != nil {
			return nil, err
		}
		r.Parts = append(r.Parts, p)
	}
	r.warn()
	r.PeakMiB = float64(PeakMiB())
	return r, nil
}

// warn adds the warnings.
func (r *BundleReport) warn() {
	const least, most = 0.25, 4
	if s := r.Latents.Std; s < least || s > most {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the latents of images have the standard deviation %.3g, a network for latents expects about 1: "+
			"the scale factor may be wrong", s))
	}
	for _, n := range r.Noise {
		if n.AlphaBar < 0.1 && n.MSE > 0.5 {
			r.Warnings = append(r.Warnings, fmt.Sprintf("at time index %d the mean square error of the estimated noise is %.2f: "+
				"the card's prediction or schedule may be wrong, or the network is not trained", n.T, n.MSE))
			return
		}
	}
}

// bundle is a bundle under check.
type bundle struct {
	dir   string
	card  *prior.BundleCard
	times map[string]durations // of calls by role
}

// open reads a part.
func (b *bundle) open(role string) (*network, error) {
	path := filepath.Join(b.dir, b.card.Files[role].File)
	data, err := modelfile.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", prior.ErrBundle, err)
	}
	n, err := newNetwork(path, data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", prior.ErrBundle, err)
	}
	return n, nil
}

// reconstruct runs images through encoder, quantizer and decoder, part by part.
func (b *bundle) reconstruct(ctx context.Context, rt *onnxruntime.Runtime, images []*raster.Image, r *BundleReport) error {
	originals := [][]float32{smooth(r.Image)}
	if len(images) > 0 {
		originals = nil
	}
	for _, img := range images {
		if err := checkImage(img, r.Image[1], r.Image[2]); err != nil {
			return err
		}
		originals = append(originals, img.Pix)
	}
	values := slices.Clone(originals)
	shape := r.Image
	for _, role := range b.card.Roles() {
		if role.Output == "eps" {
			continue
		}
		want := r.Latent
		if role.Output == "x" {
			want = r.Image
		}
		n, err := b.open(role.Name)
		if err != nil {
			return err
		}
		if values, err = b.runPart(ctx, rt, n, role, values, shape, want); err != nil {
			return err
		}
		if shape = want; role.Output == "z" {
			r.Latents.Mean, r.Latents.Std = moments(slices.Concat(values...))
		}
	}
	r.Reconstruction.Images = len(images)
	for i, x := range originals {
		r.Reconstruction.PSNR += clippedPSNR(x, func(j int) float64 { return float64(values[i][j]) }) / float64(len(originals))
		r.Reconstruction.MaxAbs = max(r.Reconstruction.MaxAbs, Deviate(values[i], x).MaxAbs)
	}
	return nil
}

// runPart runs a part on each value.
func (b *bundle) runPart(ctx context.Context, rt *onnxruntime.Runtime, n *network, role prior.Role, values [][]float32, shape, want []int) ([][]float32, error) {
	var batches []map[string]*raster.Array
	for _, v := range values {
		batches = append(batches, map[string]*raster.Array{role.Inputs[0]: {Shape: shape, Data: v}})
	}
	got, times, err := n.run(ctx, rt, batches, []string{role.Output}, map[string]*raster.Array{role.Output: {Shape: want}})
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", prior.ErrBundle, role.Name, err)
	}
	b.times[role.Name] = times
	var out [][]float32
	for _, g := range got {
		out = append(out, g[role.Output].Data)
	}
	return out, nil
}

// runNoise runs the network on pure noise at five time indices.
func (b *bundle) runNoise(ctx context.Context, rt *onnxruntime.Runtime, p *prior.Prior, r *BundleReport) error {
	c := &priorCheck{rt: rt, prior: p}
	var err error
	if c.one, err = p.Compile(rt, 1, r.Image[2], r.Image[3], onnxruntime.FP32); err != nil {
		return err
	}
	defer c.one.Close()
	for _, f := range []float64{0, 0.1, 0.5, 0.9, 1} {
		row, err := c.noiseRow(ctx, infer.Size(r.Latent), int(f*float64(p.Schedule.Steps()-1)))
		if err != nil {
			return err
		}
		r.Noise = append(r.Noise, row)
	}
	b.times["unet"] = c.times
	return nil
}
