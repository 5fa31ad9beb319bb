package testbed

import (
	"bytes"
	"cmp"
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

// imageSeed draws the images. All seeds of faults share them, and so one undisturbed run.
const imageSeed = 1

// shardImages is the number of images of the campaign that is divided into items under faults.
const shardImages = 60

// plan is a campaign with its images. It has the default number of attempts.
type plan struct {
	name   string
	images map[string][]byte
	tasks  []string
	size   int // working size in pixels; 0: size
	steps  int
	prior  string // path of the prior's file
	preset string // empty: natural
	canary int
	more   string // lines of the campaign file
}

// items returns the number of items of the campaign.
func (p plan) items() int { return len(p.images) * len(p.tasks) }

// write writes the campaign file for a dataset.
func (p plan) write(file, dataset string) error {
	text := fmt.Sprintf("name: %s\ndataset:\n  path: %q\n  size: %d\n  fit: resize\ntasks: [%s]\nprior: %q\npreset: %s\nsteps: %d\n%s",
		p.name, dataset, cmp.Or(p.size, size), strings.Join(p.tasks, ", "), p.prior, cmp.Or(p.preset, "natural"), p.steps, p.more)
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

// plans are the campaigns of a cluster under faults of the environment.
type plans struct {
	sound    plan // a large campaign
	damaged  plan // a small campaign with damaged images
	sharding plan // a campaign of many cheap items, which faults hit while it is divided into items
}

func (p plans) all() []plan { return []plan{p.sound, p.damaged, p.sharding} }

// drawPlans draws the campaigns.
func drawPlans(ctx context.Context, o chaosOptions) (p plans, err error) {
	root, err := ModuleRoot(ctx)
	if err != nil {
		return p, err
	}
	photographs, err := decodeAll(filepath.Join(root, "examples", "images", "*.png"))
	if err != nil {
		return p, err
	}
	rng := rand.New(rand.NewPCG(imageSeed, 1))
	prior := filepath.Join(root, "internal", "restore", "prior", "bundled", "prior.onnx")
	crops := func(prefix string, n int) (map[string][]byte, error) {
		images := map[string][]byte{}
		for i := range n {
			if images[fmt.Sprintf("%s-%04d.png", prefix, i)], err = crop(rng, photographs); err != nil {
				return nil, err
			}
		}
		return images, nil
	}
	p.sound = plan{name: "chaos", tasks: tasks, steps: o.steps, prior: prior, canary: 2}
	if p.sound.images, err = crops("crop", (o.items+len(tasks)-1)/len(tasks)); err != nil {
		return p, err
	}
	p.sharding = plan{name: "chaos-sharding", tasks: tasks[:1], steps: 5, prior: prior}
	if p.sharding.images, err = crops("shard", shardImages); err != nil {
		return p, err
	}
	whole, err := crop(rng, photographs)
	p.damaged = plan{name: "chaos-damaged", tasks: tasks, steps: o.steps, prior: prior, images: map[string][]byte{
		"a-good.png":  whole, // first in order: the preflight needs a readable image
		"cut-off.png": whole[:len(whole)*2/3],
		"no-png.png":  []byte("this is not an image\n"),
	}}
	return p, err
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
