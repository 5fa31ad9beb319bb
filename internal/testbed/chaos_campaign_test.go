package testbed

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// tasks of the campaigns.
var tasks = []string{"super_resolution", "inpaint_random", "gaussian_deblur", "hdr"}

// size is the working size of the images, in pixels.
const size = 64

// attempts per item. Storage faults use up attempts, but only a defect lets this many hit one item.
const attempts = 40

// plan is a campaign with its images.
type plan struct {
	name   string
	images map[string][]byte
	steps  int
	prior  string // path of the prior's file
	canary int
}

// items returns the number of items of the campaign.
func (p plan) items() int { return len(p.images) * len(tasks) }

// write writes the campaign file for a dataset.
func (p plan) write(file, dataset string) error {
	text := fmt.Sprintf("name: %s\ndataset:\n  path: %q\n  size: %d\n  fit: resize\ntasks: [%s]\nprior: %q\nsteps: %d\nattempts: %d\n",
		p.name, dataset, size, strings.Join(tasks, ", "), p.prior, p.steps, attempts)
	return os.WriteFile(file, []byte(text), 0o644)
}

// writeImages writes the images to a directory.
func (p plan) writeImages(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, data := range p.images {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// plans draws a large campaign, and a small campaign with damaged images.
func plans(ctx context.Context, o chaosOptions) (sound, damaged plan, err error) {
	root, err := ModuleRoot(ctx)
	if err != nil {
		return sound, damaged, err
	}
	photographs, err := decodeAll(filepath.Join(root, "examples", "images", "*.png"))
	if err != nil {
		return sound, damaged, err
	}
	rng := rand.New(rand.NewPCG(o.seed, 1))
	prior := filepath.Join(root, "restore", "prior", "bundled", "prior.onnx")
	sound = plan{name: "chaos", images: map[string][]byte{}, steps: o.steps, prior: prior, canary: 2}
	for i := range (o.items + len(tasks) - 1) / len(tasks) {
		if sound.images[fmt.Sprintf("crop-%04d.png", i)], err = crop(rng, photographs); err != nil {
			return sound, damaged, err
		}
	}
	whole, err := crop(rng, photographs)
	if err != nil {
		return sound, damaged, err
	}
	damaged = plan{name: "chaos-damaged", steps: o.steps, prior: prior, images: map[string][]byte{
		"a-good.png":  whole, // first in order: the preflight needs a readable image
		"cut-off.png": whole[:len(whole)*2/3],
		"no-png.png":  []byte("this is not an image\n"),
	}}
	return sound, damaged, nil
}

func decodeAll(pattern string) ([]image.Image, error) {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	var all []image.Image
	for _, path := range found {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("decode %s: %w", path, err)
		}
		all = append(all, img)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no photograph in %s", pattern)
	}
	return all, nil
}

// crop returns a square of a photograph, as PNG.
func crop(rng *rand.Rand, photographs []image.Image) ([]byte, error) {
	from := photographs[rng.IntN(len(photographs))]
	b := from.Bounds()
	side := size + rng.IntN(min(b.Dx(), b.Dy())-size)
	at := image.Pt(b.Min.X+rng.IntN(b.Dx()-side+1), b.Min.Y+rng.IntN(b.Dy()-side+1))
	square := image.NewNRGBA(image.Rect(0, 0, side, side))
	draw.Draw(square, square.Bounds(), from, at, draw.Src)
	var out bytes.Buffer
	err := png.Encode(&out, square)
	return out.Bytes(), err
}
