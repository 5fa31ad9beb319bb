package run

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ddiff/internal/cli"
	"ddiff/internal/regular"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/manifest"
	"ddiff/restore/operator"
)

const (
	// diskKernel begins a --kernel that is drawn, before its radius in pixels.
	diskKernel = "disk:"
	autoWidth  = "auto"
	// largestRadius is that of a drawn disk.
	largestRadius = 256
	// betterShape is the ratio of misfits from which another shape of blur suits a picture better.
	betterShape = 0.7
	// leastBlur is the least standard deviation in pixels of a blur that is worth a word; sharp photographs look as if they had up to 0.6.
	leastBlur = 0.8
)

// takeBlur takes widths to estimate, and drawn kernels, out of the flags, which then have numbers and files: --param std=auto, --kernel disk:auto and disk:RADIUS.
func (o *restoreOptions) takeBlur() error {
	for i, text := range o.Params {
		name, value, _ := strings.Cut(text, "=")
		if value != autoWidth {
			continue
		}
		if name != blurWidth && name != operator.GaussianDeblur+"."+blurWidth || len(o.Tasks) != 1 || !strings.EqualFold(o.Tasks[0], operator.GaussianDeblur) {
			return fmt.Errorf("--param %s: auto is a value of std in task %s only", text, operator.GaussianDeblur)
		}
		if o.Measurements.Kernel() != "" {
			return errors.New("--param std=auto and --kernel: give one of them")
		}
		o.Params = slices.Delete(slices.Clone(o.Params), i, i+1)
		o.blur = photograph.Gaussian
		return nil
	}
	radius, drawn := strings.CutPrefix(o.Measurements.Kernel(), diskKernel)
	if !drawn {
		return nil
	}
	r, err := strconv.ParseFloat(radius, 64)
	if radius == autoWidth {
		o.blur, r, err = photograph.Disk, 1, nil // of a file that stands for those of the pictures
	}
	if err != nil || !(r > 0 && r <= largestRadius) {
		return fmt.Errorf("--kernel %s: give %sauto, or a radius in pixels above 0 and up to %d", o.Measurements.Kernel(), diskKernel, largestRadius)
	}
	path, err := drawDisk(r)
	o.Measurements.SetKernel(path)
	return err
}

// drawDisk returns the path of the kernel file of a disk, below the user's folder for caches, so that passports name a file.
func drawDisk(radius float64) (path string, err error) {
	d := photograph.DrawDisk(radius)
	data, err := raster.EncodeNPY(d.Dims, d.Data)
	if err != nil {
		return "", fmt.Errorf("draw the kernel of a disk: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err == nil {
		path = filepath.Join(cache, "ddiff", "kernels", fmt.Sprintf("disk-%g.npy", radius))
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = regular.Replace(path, data, 0o644)
	}
	if err != nil {
		return "", fmt.Errorf("draw the kernel of a disk: %w; the user's folder for caches must be one that can be written", err)
	}
	return path, nil
}

// estimateBlurs estimates the blur of each input, says it, and returns the inputs that have an estimate.
func (w *pictureWriter) estimateBlurs(inputs []*picture) []*picture {
	if w.blur == "" {
		return inputs
	}
	return slices.DeleteFunc(inputs, func(in *picture) bool {
		said, err := w.estimateBlur(in)
		if errors.Is(err, photograph.ErrNoWidth) {
			err = fmt.Errorf("%w; give a number", err)
		}
		if err != nil {
			w.fail(in.name, fmt.Errorf("width auto: %w", err))
			return true
		}
		if !w.JSON && !w.Quiet {
			fmt.Fprintln(w.stderr, cli.Printable(in.name+": "+said))
		}
		return false
	})
}

// estimateBlur sets the blur of an input.
func (w *pictureWriter) estimateBlur(in *picture) (said string, err error) {
	data, err := regular.Read(in.path, manifest.MaxFileBytes)
	if err != nil {
		return "", err
	}
	look := job.Look{Operators: w.Catalogue.Operators, Card: &w.session.Prior.Card}
	task := w.spec.Tasks[0].Name
	image, err := look.Shape(task, w.spec.Tasks[0].Params, data)
	if err != nil {
		return "", err
	}
	found, err := look.Width(data, w.blur)
	if err != nil {
		return "", err
	}
	other := map[photograph.BlurShape]photograph.BlurShape{photograph.Gaussian: photograph.Disk, photograph.Disk: photograph.Gaussian}[w.blur]
	second, failed := look.Width(data, other)
	better := failed == nil && second.Misfit < betterShape*found.Misfit
	if w.blur == photograph.Gaussian {
		std := job.WidthIn(found.Pixels, image)
		in.params = map[string]float64{blurWidth: std}
		said = fmt.Sprintf("its blur has a standard deviation of about %.2g pixels (%.2g to %.2g): std=%g", found.Pixels, found.Low, found.High, std)
		if better {
			said += fmt.Sprintf("; a lens out of focus, a disk with a radius of %.2g pixels, suits it better: --kernel %sauto", second.Pixels, diskKernel)
		}
		return said, nil
	}
	radius, err := strconv.ParseFloat(strconv.FormatFloat(found.Pixels, 'g', 2, 64), 64)
	if err != nil {
		return "", err
	}
	said = fmt.Sprintf("its blur is about a disk with a radius of %g pixels (%.2g to %.2g)", radius, found.Low, found.High)
	if better {
		said += fmt.Sprintf("; a Gaussian of %.2g pixels suits it better: --param %s=auto", second.Pixels, blurWidth)
	}
	in.kernel, err = drawDisk(radius)
	return said, err
}

// blurOf describes the blur of a picture for which a person stated nothing, with what would undo it; "" where there is hardly any.
func blurOf(data []byte) string {
	gaussian, err := job.Look{}.Width(data, photograph.Gaussian)
	if err != nil || gaussian.Low < leastBlur {
		return ""
	}
	text := fmt.Sprintf("a blur of about %.2g pixels (%.2g to %.2g)", gaussian.Pixels, gaussian.Low, gaussian.High)
	remedy := fmt.Sprintf("--param %s=auto", blurWidth)
	if disk, err := (job.Look{}).Width(data, photograph.Disk); err == nil && disk.Misfit < betterShape*gaussian.Misfit {
		text = fmt.Sprintf("a blur as of a lens out of focus, a disk with a radius of %.2g pixels (%.2g to %.2g)", disk.Pixels, disk.Low, disk.High)
		remedy = "--kernel " + diskKernel + "auto"
	}
	return fmt.Sprintf("%s, unless the scene is that soft: --task %s %s --sigma auto would sharpen it", text, operator.GaussianDeblur, remedy)
}

// with returns parameters with those that were estimated for a picture.
func (p *picture) with(params map[string]float64) map[string]float64 {
	if p.params == nil {
		return params
	}
	out := maps.Clone(p.params)
	maps.Copy(out, params)
	return out
}
