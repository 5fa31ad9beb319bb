package run

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"ddiff/internal/cli"
	"ddiff/internal/regular"
	"ddiff/internal/restore/raster"
	"ddiff/manifest"
	"ddiff/restore/item"
)

const (
	// previewTail tells a preview from the restored picture.
	previewTail = "preview"
	minPreview  = 32
)

// blurWidth is the parameter of a blur whose unit is a part of the picture's shorter side.
const blurWidth = "std"

// checkPreview refuses a preview of what a part of a picture does not show.
func (o *restoreOptions) checkPreview(spec *manifest.Spec) error {
	switch task := spec.Tasks[0].Name; {
	case o.preview == 0:
		return nil
	case o.preview < minPreview:
		return fmt.Errorf("--preview: %d is less than %d pixels", o.preview, minPreview)
	case o.results != "":
		return errors.New("--preview: it keeps no results; leave --results out")
	case spec.Dataset.Mask != "" || !o.Catalogue.Operators.Known(task).Local:
		return fmt.Errorf("--preview: task %s needs the whole picture", task)
	}
	return nil
}

// cropPreviews replaces inputs by their middle parts, PNG files in a folder, and returns those that have one. Estimates are those of the whole pictures.
func (w *pictureWriter) cropPreviews(dir string, inputs []*picture) (cropped []*picture) {
	for i, in := range inputs {
		if err := w.crop(in, filepath.Join(dir, strconv.Itoa(i)+".png")); err != nil {
			w.fail(in.name, fmt.Errorf("preview: %w", err))
			continue
		}
		cropped = append(cropped, in)
	}
	return cropped
}

// crop replaces an input by its middle part, a PNG file with this path.
func (w *pictureWriter) crop(in *picture, path string) error {
	if p := w.pictures(in)[0]; *p.Task.Sigma == item.SigmaAuto {
		whole, err := w.session.Item(p)
		if err != nil {
			return err
		}
		in.sigma = &whole.Sigma
	}
	scale, err := cropPreview(in.path, path, w.preview)
	if err != nil {
		return err
	}
	in.whole, in.path, in.scale, in.base = in.path, path, scale, in.base+"."+previewTail
	if in.file != "" {
		in.file = strings.TrimSuffix(in.file, filepath.Ext(in.file)) + "." + previewTail + ".png"
	}
	return nil
}

// cropPreview writes the middle of a picture, and returns the shorter side of the picture in parts of that of the crop.
func cropPreview(from, to string, side int) (scale float64, err error) {
	data, err := regular.Read(from, manifest.MaxFileBytes)
	if err != nil {
		return 0, err
	}
	p, err := raster.DecodePicture(data)
	if err != nil {
		return 0, err
	}
	if p.Bits > 16 {
		return 0, errors.New("floating-point samples have no preview")
	}
	img := p.Image
	out := raster.New(img.Channels, min(side, img.Height), min(side, img.Width))
	top, left := (img.Height-out.Height)/2, (img.Width-out.Width)/2
	for c := range img.Channels {
		for y := range out.Height {
			copy(out.Plane(c)[y*out.Width:][:out.Width], img.Plane(c)[(top+y)*img.Width+left:])
		}
	}
	scale = float64(min(img.Height, img.Width)) / float64(min(out.Height, out.Width))
	p.Image, p.Alpha = out, nil
	file, err := raster.EncodePicture(out, *p)
	if err != nil {
		return 0, err
	}
	return scale, os.WriteFile(to, file, 0o600)
}

// replacesPreview reports whether a restored picture with this path is a preview in place of an earlier one.
func (w *pictureWriter) replacesPreview(target string) bool {
	if w.preview == 0 {
		return false
	}
	old, _ := passportOf(target)
	return old != nil && cli.IsPreview(&old.Item)
}

// scaled returns the parameters of a task for a preview: its blur is as many pixels wide as that of the picture.
func (p *picture) scaled(params map[string]float64) map[string]float64 {
	if p.scale == 0 || params[blurWidth] == 0 {
		return params
	}
	out := maps.Clone(params)
	out[blurWidth] *= p.scale
	return out
}

// unscaled returns the parameters of a task for the picture of a preview with these.
func (p *picture) unscaled(params map[string]float64) map[string]float64 {
	if p.scale == 0 || params[blurWidth] == 0 {
		return params
	}
	const digits = 1e6 // without the rounding of scaled
	out := maps.Clone(params)
	out[blurWidth] = math.Round(out[blurWidth]/p.scale*digits) / digits
	return out
}
