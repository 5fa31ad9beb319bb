package check

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/raster"
)

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

// BundleReport is the part of a report that only the bundle of a latent prior has.
type BundleReport struct {
	FirstStage string       `json:"first_stage"`
	Class      string       `json:"class,omitempty"`
	Scale      float64      `json:"scale"`
	Latent     []int        `json:"latent"`
	Parts      []PartReport `json:"parts"`
	// Reconstruction and Latents are of the same images.
	Reconstruction Reconstruction   `json:"reconstruction"`
	Latents        LatentStatistics `json:"latents"`
	// Gradient reports whether the decoder has a gradient; NoGradient names the operation without one.
	Gradient   bool   `json:"gradient"`
	NoGradient string `json:"no_gradient,omitempty"`
}

// bundle checks the parts of the latent prior in a folder and their shapes together.
func (c *priorCheck) bundle(ctx context.Context, dir string) (*BundleReport, error) {
	card, err := prior.ReadBundleCard(dir)
	if err != nil {
		return nil, err
	}
	latent, image := c.prior.Card.Latent, []int{1, card.Channels, c.size, c.size}
	r := &BundleReport{
		FirstStage: latent.FirstStage, Class: latent.Class, Scale: latent.Scale,
		Latent: c.prior.Space().Dims(image), Gradient: latent.NoGradient == "", NoGradient: latent.NoGradient,
	}
	b := bundle{dir: dir, card: card, image: image, times: map[string]durations{"unet": c.times}}
	if err := b.reconstruct(ctx, c.rt, c.o.Images, r); err != nil {
		return nil, err
	}
	for _, role := range card.Roles() {
		n, err := b.open(role.Name)
		if err != nil {
			return nil, err
		}
		p := PartReport{Role: role.Name, File: card.Files[role.Name].File, Parameters: n.parameters, MSPerCall: b.times[role.Name].median()}
		if p.Vectors, err = n.checkVectors(ctx, c.rt); err != nil {
			return nil, err
		}
		r.Parts = append(r.Parts, p)
	}
	return r, nil
}

// bundle is a bundle under check.
type bundle struct {
	dir   string
	card  *prior.BundleCard
	image []int                // the shape of an image
	times map[string]durations // of calls by role
}

// open reads a part.
func (b *bundle) open(role string) (*network, error) {
	path := filepath.Join(b.dir, b.card.Files[role].File)
	n, err := openNetwork(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", prior.ErrBundle, err)
	}
	return n, nil
}

// reconstruct runs images through encoder, quantizer and decoder, part by part.
func (b *bundle) reconstruct(ctx context.Context, rt *onnxruntime.Runtime, images []*raster.Image, r *BundleReport) error {
	originals := [][]float32{smooth(b.image)}
	if len(images) > 0 {
		originals = nil
	}
	for _, img := range images {
		originals = append(originals, img.Pix)
	}
	values := slices.Clone(originals)
	shape := b.image
	for _, role := range b.card.Roles() {
		if role.Output == "eps" {
			continue
		}
		want := r.Latent
		if role.Output == "x" {
			want = b.image
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
