package main_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	photos "ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
)

// kind is a way in which pictures are degraded, with the command of a person who has them.
type kind struct {
	name, task string
	args       []string
	sigma      float64   // of the noise that is added
	quality    int       // of JPEG; 0: PNG
	kernel     []float32 // of a blur, nil: none
	gamma      float64   // of the blur: 0 for that of the values of the file
	dead       float64   // share of dead and hot pixels
	photons    float64   // 0: none
	electrons  float64   // of a camera, see exposed; 0: none
	grain      bool      // neighbouring pixels share noise
	bright     float64   // exposure before white is cut off; 0: 1
	bits       int       // of the file; 0: 8
	lost       func(x, y int) bool
	factor     int    // of the reduction; 0: 1
	large      bool   // of a mosaic of 256×256 pixels, in tiles of 128
	classical  string // method of tools/classical_methods.py
}

// kinds are simulated cameras, scans and files. Blurs are in pixels of 128.
func kinds() []kind {
	gauss := func(std float64) []float32 {
		r := int(4 * std)
		var k []float32
		sum := 0.0
		for i := range (2*r + 1) * (2*r + 1) {
			a, b := float64(i/(2*r+1)-r), float64(i%(2*r+1)-r)
			v := math.Exp(-(a*a + b*b) / (2 * std * std))
			sum += v
			k = append(k, float32(v))
		}
		for i := range k {
			k[i] /= float32(sum)
		}
		return k
	}
	line := make([]float32, 11*11)
	for i := range 9 {
		line[(4+i/4)*11+1+i] = 1. / 9
	}
	speck := func(x, y int) bool { return (x*7+y*13)%23 < 2 && (x/3*5+y/3*11)%7 == 0 }
	scratch := func(x, y int) bool { return (x+y/9)%41 < 2 || (y+x/5)%53 == 0 }
	deblur := func(args ...string) []string { return append(args, "--sigma", "auto") }
	return []kind{
		{name: "camera", task: "denoise", args: []string{"--sigma", "auto"}, sigma: 0.08, quality: 90, classical: "bm3d_best"},
		{name: "dusk", task: "denoise", args: []string{"--sigma", "auto"}, electrons: 400, quality: 90, classical: "bm3d_best"},
		{name: "night", task: "denoise", args: []string{"--sigma", "auto"}, electrons: 100, quality: 90, classical: "bm3d_best"},
		{name: "noisy", task: "denoise", args: []string{"--sigma", "auto"}, sigma: 0.06, classical: "bm3d"},
		{name: "shot", task: "denoise", args: []string{"--sigma", "0.01", "--photons", "60"}, sigma: 0.01, photons: 60, classical: "bm3d_best"},
		{name: "grain", task: "denoise", args: []string{"--sigma", "auto"}, sigma: 0.06, grain: true, classical: "bm3d_best"},
		{name: "overexposed", task: "denoise", args: []string{"--sigma", "0.08"}, sigma: 0.08, bright: 1.4, classical: "bm3d_best"},
		{name: "twelve-bits", task: "denoise", args: []string{"--sigma", "auto", "--measurement-range", "0,4095"}, sigma: 0.06, bits: 12, classical: "bm3d"},
		{name: "defocus", task: "gaussian_deblur", args: deblur("--kernel", "disk:auto"), sigma: 0.02, kernel: photos.DrawDisk(2.2).Data, classical: "wiener"},
		{name: "soft", task: "gaussian_deblur", args: deblur("--param", "std=auto"), sigma: 0.02, kernel: gauss(1.5), classical: "wiener"},
		{name: "soft-camera", task: "gaussian_deblur", args: deblur("--param", "std=3"), sigma: 0.02, quality: 92, kernel: gauss(1.5), classical: "wiener"},
		{name: "dead-pixels", task: "gaussian_deblur", args: deblur("--param", "std=3"), sigma: 0.02, kernel: gauss(1.5), dead: 0.01, classical: "median_wiener"},
		{name: "linear-light", task: "gaussian_deblur", args: deblur("--param", "std=3"), sigma: 0.02, kernel: gauss(1.5), gamma: 2.2, classical: "wiener"},
		{name: "shaken", task: "motion_deblur", args: deblur("--kernel", "KERNEL", "--kernel-form", "correlation"), sigma: 0.02, kernel: line, classical: "wiener"},
		{name: "dusty-scan", task: "inpaint", args: []string{"--sigma", "0.02", "--mask", "MASK"}, sigma: 0.01, lost: speck, classical: "diffusion"},
		{name: "scratched", task: "inpaint", args: []string{"--sigma", "0.02", "--mask", "MASK"}, sigma: 0.01, lost: scratch, classical: "diffusion"},
		{name: "small", task: "super_resolution_area", args: []string{"--param", "factor=2", "--sigma", "0.02"}, sigma: 0.02, factor: 2, classical: "bicubic"},
		{name: "strong-jpeg", task: "jpeg", quality: 15, classical: "bm3d_best"},
		{name: "large", task: "denoise", args: []string{"--sigma", "auto", "--tile", "128"}, sigma: 0.08, large: true, classical: "bm3d"},
	}
}

// degrade returns the values that are seen of a scene.
func (k kind) degrade(x *raster.Image, seed uint64) *raster.Image {
	change := func(x *raster.Image, by func(v float64) float64) *raster.Image {
		x = x.Clone()
		for i, v := range x.Pix {
			x.Pix[i] = float32(by(float64(v)))
		}
		return x
	}
	y := x
	if k.gamma > 0 {
		y = change(y, func(v float64) float64 { return 2*math.Pow(max(0, v+1)/2, k.gamma) - 1 })
	}
	if k.kernel != nil {
		y = y.Clone()
		spread(x, y, k.kernel)
		if k.gamma > 0 {
			spread(change(x, func(v float64) float64 { return 2*math.Pow(max(0, v+1)/2, k.gamma) - 1 }), y, k.kernel)
			y = change(y, func(v float64) float64 { return 2*math.Pow(max(0, v+1)/2, 1/k.gamma) - 1 })
		}
	}
	if f := k.factor; f > 1 {
		small := raster.New(y.Channels, y.Height/f, y.Width/f)
		for c := range y.Channels {
			for i := range small.Height * f * small.Width * f {
				row, col := i/(small.Width*f), i%(small.Width*f)
				small.Plane(c)[row/f*small.Width+col/f] += y.Plane(c)[row*y.Width+col] / float32(f*f)
			}
		}
		y = small
	}
	y = y.Clone()
	r := rand.New(rand.NewPCG(seed, 9))
	if k.electrons > 0 {
		return exposed(y, k.electrons, r)
	}
	white := make([]float64, len(y.Pix))
	for i := range white {
		white[i] = r.NormFloat64()
	}
	for i := range y.Pix {
		noise := k.sigma * white[i]
		if k.grain { // of the same variance
			noise = k.sigma / 2 * (white[i] + white[(i+1)%len(white)] + white[(i+y.Width)%len(white)] + white[(i+y.Width+1)%len(white)])
		}
		if k.photons > 0 {
			noise += math.Sqrt(2*max(0, float64(y.Pix[i])+1)/k.photons) * r.NormFloat64()
		}
		y.Pix[i] = float32(min(1, max(-1, float64(y.Pix[i])+noise)))
	}
	n := y.Height * y.Width
	for i := range n {
		if dead := r.Float64() < k.dead; dead || k.lost != nil && k.lost(i%y.Width, i/y.Width) {
			for c := range y.Channels {
				if y.Pix[c*n+i] = 1; dead && i%2 == 0 {
					y.Pix[c*n+i] = -1
				}
			}
		}
	}
	return y
}

// scenes are the photographs that are degraded, brighter than white where a picture is overexposed.
func (k kind) scenes(t *testing.T) map[string]*raster.Image {
	t.Helper()
	out := map[string]*raster.Image{}
	if k.large {
		all := raster.New(3, 2*128, 2*128)
		for i, name := range []string{"astronaut", "chelsea", "coffee", "rocket"} {
			x, err := raster.Fit(picture(t, filepath.Join("..", "..", "examples", "images", name+".png")), "resize", 128, 1)
			must(t, err)
			for c := range 3 {
				for row := range 128 {
					copy(all.Plane(c)[(i/2*128+row)*all.Width+i%2*128:], x.Plane(c)[row*128:][:128])
				}
			}
		}
		return map[string]*raster.Image{"mosaic": all}
	}
	for _, name := range []string{"dam", "solar_cooker", "windmill"} {
		x := picture(t, filepath.Join("..", "..", "examples", "unseen", name+".png"))
		if k.bright > 0 {
			for i, v := range x.Pix {
				x.Pix[i] = float32(k.bright)*(v+1) - 1
			}
		}
		out[name] = x
	}
	return out
}

// TestRestoreKinds degrades photographs as cameras, scans and files do, and restores each kind with one command. Those that are far below their inputs have a warning. `make
// restore-photographs` restores all of them, the tests of the package one photograph of two kinds.
func TestRestoreKinds(t *testing.T) {
	t.Parallel()
	kept, all := os.LookupEnv("DDIFF_RESTORE_PHOTOGRAPHS")
	some := kinds()
	if !all {
		some, kept = []kind{some[2], some[8]}, t.TempDir()
	}
	for _, k := range some {
		scenes := k.scenes(t)
		if !all {
			maps.DeleteFunc(scenes, func(name string, _ *raster.Image) bool { return name != "dam" })
		}
		k.restore(t, scenes, kept)
	}
}

// restore degrades and restores the photographs of a kind, with a folder NAME-KIND.TASK for each below kept.
func (k kind) restore(t *testing.T, scenes map[string]*raster.Image, kept string) {
	t.Helper()
	folders, before := map[string]string{}, map[string]float64{}
	args := []string{"restore", "--json", "--format", "png", "--task", k.task}
	for _, a := range k.args {
		if a == "MASK" || a == "KERNEL" {
			a = filepath.Join(kept, k.name+"."+strings.ToLower(a))
		}
		args = append(args, a)
	}
	encode := func(x *raster.Image) []byte {
		data, err := raster.EncodePNG(x)
		must(t, err)
		return data
	}
	seed := uint64(0)
	for _, name := range slices.Sorted(maps.Keys(scenes)) { // in one order, for the seeds
		x := scenes[name]
		dir := filepath.Join(kept, name+"-"+k.name+"."+k.task)
		must(t, os.MkdirAll(dir, 0o755))
		seed++
		y := k.degrade(x, seed)
		if k.electrons > 0 {
			x = exposed(x, 0, nil)
		}
		photo, data := filepath.Join(dir, "photo.png"), encode(y)
		switch {
		case k.quality > 0:
			photo, data = filepath.Join(dir, "photo.jpg"), asJPEG(t, data, k.quality)
		case k.bits > 0: // numbers up to 4095 in a file of 16 bits
			deep := y.Clone()
			for i, v := range y.Pix {
				deep.Pix[i] = float32((float64(v)+1)/2*4095/65535)*2 - 1
			}
			var err error
			data, err = raster.EncodePicture(deep, raster.Picture{Bits: 16})
			must(t, err)
		}
		write(t, photo, data)
		if k.quality > 0 {
			y = picture(t, photo)
		}
		write(t, filepath.Join(dir, "truth.png"), encode(x))
		write(t, filepath.Join(dir, "input.png"), encode(y))
		if k.lost != nil {
			mask := raster.New(1, x.Height, x.Width)
			for i := range mask.Pix {
				if mask.Pix[i] = 1; k.lost(i%x.Width, i/x.Width) {
					mask.Pix[i] = 0
				}
			}
			file, err := raster.EncodeNPY([]int{x.Height, x.Width}, mask.Pix)
			must(t, err)
			write(t, filepath.Join(dir, "mask.npy"), file)
			write(t, filepath.Join(kept, k.name+".mask"), file)
		}
		if k.kernel != nil {
			side := int(math.Sqrt(float64(len(k.kernel))))
			file, err := raster.EncodeNPY([]int{side, side}, k.kernel)
			must(t, err)
			write(t, filepath.Join(dir, "kernel.npy"), file)
			write(t, filepath.Join(kept, k.name+".kernel"), file)
		}
		folders[photo], args = dir, append(args, photo)
		if k.factor == 0 {
			before[photo] = psnr(t, picture(t, filepath.Join(dir, "truth.png")), y)
		}
	}
	e := ddiff(t, args...)
	if e.code != 0 && e.code != 3 {
		t.Fatalf("%s: exit code %d: %s", k.name, e.code, e.stderr)
	}
	for line := range strings.Lines(e.stdout) {
		var said struct {
			Input, Output string
			Reason        string
			Warnings      []struct{ Code string }
		}
		must(t, json.Unmarshal([]byte(line), &said))
		dir, ok := folders[said.Input]
		if !ok {
			continue
		}
		level := k.sigma
		if k.photons > 0 {
			level = math.Sqrt(level*level + 2/k.photons)
		}
		facts := map[string]any{"sigma": level, "degradation": k.name, "classical": k.classical, "said": len(said.Warnings) > 0 || said.Reason != ""}
		if said.Output != "" {
			x := picture(t, said.Output)
			if k.bits > 0 {
				for i, v := range x.Pix {
					x.Pix[i] = float32((float64(v)+1)/2*65535/4095)*2 - 1
				}
			}
			write(t, filepath.Join(dir, "output.png"), encode(x))
			after := psnr(t, picture(t, filepath.Join(dir, "truth.png")), picture(t, filepath.Join(dir, "output.png")))
			fmt.Printf("photo=%s input=%.2f restored=%.2f said=%v\n", filepath.Base(dir), before[said.Input], after, facts["said"])
			if facts["said"] == false && after < before[said.Input]-0.5 {
				t.Errorf("%s: %.2f dB, the input has %.2f dB, and nothing is said", filepath.Base(dir), after, before[said.Input])
			}
		} else {
			fmt.Printf("photo=%s stopped: %s\n", filepath.Base(dir), said.Reason)
			write(t, filepath.Join(dir, "output.png"), read(t, filepath.Join(dir, "input.png")))
		}
		data, err := json.Marshal(facts)
		must(t, err)
		write(t, filepath.Join(dir, "restoration.json"), data)
		delete(folders, said.Input)
	}
	for photo := range folders {
		t.Errorf("%s: nothing is said about %s: %s", k.name, photo, e.stderr)
	}
}
