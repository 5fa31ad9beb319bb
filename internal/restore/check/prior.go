package check

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"ddiff/internal/hostmemory"
	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/raster"
)

// PriorOptions configure the check of a prior.
type PriorOptions struct {
	// Size is the side of the square images in pixels, rounded up to the card's multiple_of. Default: 256. A prior of images of one size has that one.
	Size int
	// Images are photographs of that size with the prior's channels. Default: none, and for a bundle an image of slow waves.
	Images []*raster.Image
	// Timesteps are the time indices. Default: ten, from the first to the last.
	Timesteps []int
}

// NoiseRow contains statistics of the estimated noise ε̂ in √(1−ᾱ)·ε at one time index.
type NoiseRow struct {
	T        int     `json:"t"`
	AlphaBar float64 `json:"alpha_bar"`
	Mean     float64 `json:"mean"`
	Std      float64 `json:"std"`
	// MSE is the mean of (ε̂ − ε)².
	MSE float64 `json:"mse"`
}

// ImageRow scores one denoising evaluation at one time index, averaged over the images.
type ImageRow struct {
	T int `json:"t"`
	// Sigma is √((1−ᾱ)/ᾱ), the standard deviation of the noise in x_t/√ᾱ for images in [−1, 1].
	Sigma float64 `json:"sigma"`
	// Noisy and Denoised are the PSNR of x_t/√ᾱ and of the estimate z, both clipped to [−1, 1], in dB.
	Noisy    float64 `json:"noisy_psnr"`
	Denoised float64 `json:"denoised_psnr"`
	// MSE is the mean of (ε̂ − ε)².
	MSE float64 `json:"mse"`
}

// PriorReport is the result of checking a prior.
type PriorReport struct {
	Kind       string     `json:"kind"` // prior, or bundle for the folder of a latent prior
	File       string     `json:"file"`
	SHA256     string     `json:"sha256"`
	Name       string     `json:"name"`
	Parameters int        `json:"parameters"`
	Shape      [4]int     `json:"shape"` // of images
	Noise      []NoiseRow `json:"noise"`
	// Fits has no rows for a latent prior.
	Fits []prior.Fit `json:"fits,omitempty"`
	// Images has no rows for a latent prior.
	Images []ImageRow `json:"images,omitempty"`
	// Vectors is nil without reference vectors. Those of a bundle are in its parts.
	Vectors *Agreement `json:"vectors,omitempty"`
	// MSPerCall is the median time of a call for one image, in milliseconds.
	MSPerCall float64 `json:"ms_per_call"`
	// PeakMiB is the peak resident memory of this process.
	PeakMiB float64 `json:"peak_mib"`
	// Warnings describe likely but uncertain defects.
	Warnings []string `json:"warnings,omitempty"`
	// BundleReport is nil unless the prior is a bundle.
	*BundleReport
}

// Prior checks the prior in file, which may be prior.Bundled, or the folder of a bundle. Errors are those of prior.Load, ErrVectors and
// ErrNotFinite; deviations from the vectors are in the report.
func Prior(ctx context.Context, rt *onnxruntime.Runtime, file string, o PriorOptions) (*PriorReport, error) {
	p, err := prior.Open(file)
	if err != nil {
		return nil, err
	}
	v, err := p.Verify(ctx, rt)
	if err != nil {
		return nil, err
	}
	c, err := newPriorCheck(rt, p, o)
	if err != nil {
		return nil, err
	}
	defer c.one.Close()
	r := &PriorReport{
		Kind: "prior", File: file, SHA256: p.SHA256, Name: p.Card.Name, Parameters: p.Parameters(),
		Shape: [4]int{1, p.Card.Channels, c.size, c.size},
	}
	if err := c.statistics(ctx, r); err != nil {
		return nil, err
	}
	r.MSPerCall = c.times.median()
	if r.Fits, err = p.Fits(ctx, c.one); err != nil {
		return nil, err
	}
	c.one.Close() // before the next network is compiled: each takes several times its file's size in memory
	if info, statErr := os.Stat(file); statErr == nil && info.IsDir() {
		r.Kind = "bundle"
		r.BundleReport, err = c.bundle(ctx, file)
	} else {
		r.Vectors, err = c.vectors(ctx, file)
	}
	if err != nil {
		return nil, err
	}
	r.Warnings = warnings(r)
	switch {
	case v.CPU != "":
		r.Warnings = append(r.Warnings, "OpenVINO cannot compute the network: "+v.CPU)
	case v.Unfused != "":
		r.Warnings = append(r.Warnings, "OpenVINO computes the network as it is in the file, more slowly: "+v.Unfused)
	}
	r.PeakMiB = float64(hostmemory.Peak() >> 20)
	return r, nil
}

// priorCheck holds a prior compiled for one image.
type priorCheck struct {
	rt    *onnxruntime.Runtime
	prior *prior.Prior
	o     PriorOptions
	size  int
	one   *prior.Network // for one image of that size
	times durations
}

func newPriorCheck(rt *onnxruntime.Runtime, p *prior.Prior, o PriorOptions) (*priorCheck, error) {
	c := &priorCheck{rt: rt, prior: p, o: o, size: imageSize(cmp.Or(p.Card.Fixed[0], o.Size), p.Card.MultipleOf)}
	if len(o.Timesteps) == 0 {
		last := float64(p.Schedule.Steps() - 1)
		for _, f := range []float64{0, 0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1} {
			c.o.Timesteps = append(c.o.Timesteps, int(math.Round(f*last)))
		}
		c.o.Timesteps = slices.Compact(c.o.Timesteps)
	}
	for _, img := range o.Images {
		if err := checkImage(img, p.Card.Channels, c.size); err != nil {
			return nil, err
		}
	}
	var err error
	c.one, err = p.Compile(rt, 1, c.size, c.size, onnxruntime.FP32)
	return c, err
}

// statistics runs the network at each time index.
func (c *priorCheck) statistics(ctx context.Context, r *PriorReport) error {
	for _, t := range c.o.Timesteps {
		if t < 0 || t >= c.prior.Schedule.Steps() {
			return fmt.Errorf("time index %d: the schedule has 0..%d", t, c.prior.Schedule.Steps()-1)
		}
		a := c.prior.Schedule.AlphaBar[t]
		n, err := c.noiseRow(ctx, t)
		if err != nil {
			return err
		}
		r.Noise = append(r.Noise, n)
		if len(c.o.Images) == 0 || c.prior.Card.Latent != nil {
			continue
		}
		eps := make([]float32, len(c.one.X.F32))
		row := ImageRow{T: t, Sigma: math.Sqrt((1 - a) / a)}
		for i, img := range c.o.Images {
			noise.Normal(eps, fixedNoise(), noise.Step, uint32(t+(i+1)*c.prior.Schedule.Steps()), 1)
			got, xt, err := c.estimateNoise(ctx, img.Pix, eps, t)
			if err != nil {
				return err
			}
			n := float64(len(c.o.Images))
			row.Noisy += clippedPSNR(img.Pix, func(j int) float64 { return float64(xt[j]) / math.Sqrt(a) }) / n
			row.Denoised += clippedPSNR(img.Pix, func(j int) float64 {
				return (float64(xt[j]) - math.Sqrt(1-a)*float64(got[j])) / math.Sqrt(a)
			}) / n
			row.MSE += meanSquare(got, eps) / n
		}
		r.Images = append(r.Images, row)
	}
	return nil
}

// fixedNoise is the key of the noise, equal in every check.
func fixedNoise() noise.Key {
	return noise.NewKey([32]byte([]byte("ddiff prior check: fixed noise..")))
}

// noiseRow evaluates the network on pure noise at a time index.
func (c *priorCheck) noiseRow(ctx context.Context, t int) (NoiseRow, error) {
	eps := make([]float32, len(c.one.X.F32))
	noise.Normal(eps, fixedNoise(), noise.Step, uint32(t), 1)
	got, _, err := c.estimateNoise(ctx, nil, eps, t)
	if err != nil {
		return NoiseRow{}, err
	}
	mean, std := moments(got)
	return NoiseRow{T: t, AlphaBar: c.prior.Schedule.AlphaBar[t], Mean: mean, Std: std, MSE: meanSquare(got, eps)}, nil
}

// estimateNoise returns the network's estimate of ε in x_t = √ᾱ·x + √(1−ᾱ)·ε, and x_t. A nil x is a grey image.
func (c *priorCheck) estimateNoise(ctx context.Context, x, eps []float32, t int) (got, xt []float32, err error) {
	a := c.prior.Schedule.AlphaBar[t]
	xt = make([]float32, len(eps))
	for i := range xt {
		v := math.Sqrt(1-a) * float64(eps[i])
		if x != nil {
			v += math.Sqrt(a) * float64(x[i])
		}
		xt[i] = float32(v)
	}
	begin := time.Now()
	got, err = predict(ctx, c.one, xt, t)
	if err != nil {
		return nil, nil, err
	}
	c.times = append(c.times, time.Since(begin))
	if i, ok := raster.Finite(got); !ok {
		return nil, nil, fmt.Errorf("%s: %w: value %d at time index %d is %v", c.prior.File, ErrNotFinite, i, t, got[i])
	}
	for i := range got {
		switch v := float64(got[i]); c.prior.Card.Predicts() {
		case prior.Sample:
			got[i] = float32((float64(xt[i]) - math.Sqrt(a)*v) / math.Sqrt(1-a))
		case prior.Velocity:
			got[i] = float32(math.Sqrt(a)*v + math.Sqrt(1-a)*float64(xt[i]))
		}
	}
	return got, xt, nil
}

// vectors compares the file, and the form that the solver inlines unless the network is continuous, with the reference vectors; nil without vectors.
func (c *priorCheck) vectors(ctx context.Context, file string) (*Agreement, error) {
	v, err := readVectors(file)
	if err != nil || v == nil {
		return nil, err
	}
	n, err := openNetwork(file)
	if err != nil {
		return nil, err
	}
	if c.prior.Card.Continuous() { // the vectors have times of the network
		return n.compare(ctx, c.rt, v)
	}
	got, err := c.predictAll(ctx, n, v) // first, because Compile checks the size against the card
	if err != nil {
		return nil, err
	}
	plain, err := n.compare(ctx, c.rt, v)
	if err != nil {
		return nil, err
	}
	inlined, err := v.compare(map[string]*raster.Array{n.outputs[0].Name: got})
	if err != nil {
		return nil, err
	}
	inlined.File = &plain.Deviation
	inlined.Deviation, inlined.OK = inlined.max(plain.Deviation), inlined.OK && plain.OK
	return inlined, nil
}

// predictAll evaluates the vectors' inputs one by one in the form that the solver inlines.
func (c *priorCheck) predictAll(ctx context.Context, n *network, v *Vectors) (*raster.Array, error) {
	var x, t *raster.Array
	for _, p := range n.inputs {
		if len(p.Dims) == 4 {
			x = v.Inputs[p.Name]
		} else {
			t = v.Inputs[p.Name]
		}
	}
	if x == nil || t == nil || len(x.Shape) != 4 || len(t.Data) != x.Shape[0] || len(v.Outputs) != 1 {
		return nil, fmt.Errorf("%w: want the image batch, its times and one output", ErrVectors)
	}
	one, err := c.prior.Compile(c.rt, 1, x.Shape[2], x.Shape[3], onnxruntime.FP32)
	if err != nil {
		return nil, err
	}
	defer one.Close()
	out := &raster.Array{Shape: x.Shape}
	each := len(x.Data) / x.Shape[0]
	for i := range t.Data {
		got, err := predict(ctx, one, x.Data[i*each:(i+1)*each], int(t.Data[i]))
		if err != nil {
			return nil, err
		}
		out.Data = append(out.Data, got...)
	}
	return out, nil
}

// warnings lists results that a trained network with a correct card does not show.
func warnings(r *PriorReport) []string {
	var out []string
	worst := 0.0
	for _, n := range r.Noise {
		if n.AlphaBar < 0.1 {
			worst = max(worst, n.MSE)
		}
	}
	if worst > 0.5 {
		out = append(out, fmt.Sprintf("the mean square error of the estimated noise is %.2f where ᾱ < 0.1: "+
			"the card's prediction or schedule may be wrong, or the network is not trained", worst))
	}
	if doubt := prior.Doubt(r.Fits); doubt != "" {
		out = append(out, doubt)
	}
	const least, most = 0.25, 4 // of latents
	if b := r.BundleReport; b != nil && (b.Latents.Std < least || b.Latents.Std > most) {
		out = append(out, fmt.Sprintf("the latents of images have the standard deviation %.3g, a network for latents expects about 1: "+
			"the scale factor may be wrong", b.Latents.Std))
	}
	for _, i := range r.Images {
		if i.Sigma > 0.02 && i.Sigma < 1 && i.Denoised < i.Noisy {
			return append(out, fmt.Sprintf("at time index %d denoising reduces the PSNR from %.1f dB to %.1f dB", i.T, i.Noisy, i.Denoised))
		}
	}
	return out
}

// predict runs the network on one image at a time index and returns a copy of its output.
func predict(ctx context.Context, n *prior.Network, x []float32, t int) ([]float32, error) {
	copy(n.X.F32, x)
	n.T.I64[0] = int64(t)
	if err := n.Run(ctx); err != nil {
		return nil, err
	}
	return slices.Clone(n.Y.F32), nil
}
