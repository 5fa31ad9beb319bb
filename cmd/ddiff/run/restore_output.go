package run

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"ddiff/internal/cli"
	"ddiff/internal/regular"
	"ddiff/internal/restore/passport"
	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/raster/tiff"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// outputOptions are the flags of the files that restore writes.
type outputOptions struct {
	format       string
	quality      int
	strip        bool
	recursive    bool
	keepObserved bool
	unchecked    bool
	preview      int
}

func (o *outputOptions) add(f *pflag.FlagSet) {
	f.StringVar(&o.format, "format", "", "format of restored pictures: png, jpeg, tiff or webp (default: that of --out's extension, or of the picture; PNG for arrays)")
	f.IntVar(&o.quality, "quality", photograph.DefaultQuality, "quality of JPEG files, 1 to 100; WebP is written without loss")
	f.BoolVar(&o.strip, "strip", false, "leave out camera, date, place, copyright and texts of the picture, and the folders of files")
	f.BoolVarP(&o.recursive, "recursive", "r", false, "also restore the pictures of folders in folders; --out gets the same folders")
	f.BoolVar(&o.keepObserved, "keep-observed", false, "keep the observed pixels of a picture with a mask as they are (default in inpaint)")
	f.IntVar(&o.preview, "preview", 0, "restore only the middle of each picture, a square of so many `pixels` at most, as photo.preview.restored.png")
	f.BoolVar(&o.unchecked, "unchecked", false, "restore with the stated sigma alone, and write also a result that does not explain its picture")
}

// beginningOf returns the first bytes of a file, nil if it cannot be read.
func beginningOf(path string) []byte {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() { // a pipe would lose its beginning
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close() // it is only read
	b := make([]byte, raster.SniffBytes)
	n, _ := f.Read(b)
	return b[:n]
}

// isMeasurement reports whether a file is a picture or an array, by its content, or by its name where it is damaged.
func isMeasurement(path string) bool {
	b := beginningOf(path)
	return raster.IsPicture(b) || raster.IsNPY(b) || raster.IsForeign(b) || manifest.IsMeasurement(path)
}

// restoredName returns the name of a file without the end of restored pictures.
func restoredName(name string) (stem string, ok bool) {
	if _, known := photograph.FormatOf(name); !known {
		return name, false
	}
	return strings.CutSuffix(strings.TrimSuffix(name, filepath.Ext(name)), restoredSuffix)
}

// naturalExtension is that of the restored picture of an input.
func naturalExtension(path string) string {
	b, bits := beginningOf(path), 8
	if raster.FormatOf(b) == "tiff" {
		if data, err := regular.Read(path, manifest.MaxFileBytes); err == nil {
			bits = tiff.Bits(data)
		}
	}
	f := photograph.NaturalFormat(b, bits)
	if own, ok := photograph.FormatOf(path); ok && own == f {
		return filepath.Ext(path)
	}
	return f.Extension()
}

// resolveOutput reads --out and --format.
func (o *restoreOptions) resolveOutput(inputs []*picture) error {
	if o.quality < 1 || o.quality > 100 {
		return fmt.Errorf("--quality: %d is not from 1 to 100", o.quality)
	}
	var format photograph.Format
	if o.format != "" {
		var err error
		if format, err = photograph.ParseFormat(strings.ToLower(o.format)); err != nil {
			return fmt.Errorf("--format: %w", err)
		}
		for _, in := range inputs {
			if own, ok := photograph.FormatOf(in.ext); !ok || own != format {
				in.ext = format.Extension()
			}
		}
	}
	if o.preview > 0 {
		if o.format != "" && format != photograph.PNG {
			return fmt.Errorf("--format %s: a preview is a PNG file; leave --format out", o.format)
		}
		for _, in := range inputs {
			in.ext = photograph.PNG.Extension()
		}
	}
	info, err := os.Stat(o.into)
	ext := strings.ToLower(filepath.Ext(o.into))
	written, ok := photograph.FormatOf(o.into)
	if o.into == "" || err == nil && info.IsDir() || !ok && !manifest.IsImage(o.into) && ext != ".heic" && ext != ".avif" {
		return nil
	}
	switch {
	case !ok:
		return fmt.Errorf("--out %s: %s is not written; the formats are png, jpeg, tiff and webp", o.into, strings.TrimPrefix(ext, "."))
	case len(inputs) > 1:
		return fmt.Errorf("--out %s is a file, and there are %d pictures; give a folder", o.into, len(inputs))
	case o.format != "" && format != written:
		return fmt.Errorf("--out %s is a %s file, and --format is %s; leave --format out, or name another file", o.into, written, format)
	case o.preview > 0 && written != photograph.PNG:
		return fmt.Errorf("--out %s: a preview is a PNG file; name one, or a folder", o.into)
	}
	path, err := filepath.Abs(o.into)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	inputs[0].file, o.into = path, ""
	return nil
}

// lookAtDraws refuses a mask or kernel that is probably not what it was given as, before anything is computed, and says how much a mask changes. A file that cannot
// be read fails its pictures.
func (o *restoreOptions) lookAtDraws(spec *manifest.Spec, stderr io.Writer) error {
	for name, path := range map[string]string{photograph.Mask: spec.Dataset.Mask, photograph.Kernel: spec.Dataset.Kernel} {
		if path == "" {
			continue
		}
		data, err := regular.Read(path, manifest.MaxFileBytes)
		if err != nil {
			continue
		}
		f, err := photograph.ReadDraw(name, data, spec.Dataset.DrawForm())
		switch {
		case err != nil:
		case f.Doubt != "" && name == photograph.Mask:
			return fmt.Errorf("--mask %s: %s", relative(path), f.Doubt)
		case f.Doubt != "" && !o.unchecked:
			return fmt.Errorf("--kernel %s: %s; --unchecked uses it as it is", relative(path), f.Doubt)
		case name == photograph.Mask && !o.JSON && !o.Quiet:
			fmt.Fprintln(stderr, cli.Printable(fmt.Sprintf("mask %s: %.2g %% of the pixels are lost, and filled", relative(path), 100*f.Lost())))
		}
	}
	return nil
}

// keep reports whether observed pixels are kept.
func (o *restoreOptions) keep(flags *pflag.FlagSet, spec *manifest.Spec) bool {
	if flags.Changed("keep-observed") {
		return o.keepObserved
	}
	return o.Catalogue.Operators.Known(spec.Tasks[0].Name).KeepsObserved()
}

// encode returns the file of a restored picture in the format of its target, and warnings of what this file cannot have of the measurement's. restored
// is its PNG file; img is nil where only that file is known.
func (o *restoreOptions) encode(in *picture, target string, restored []byte, img *raster.Image, r *item.ValueRange) ([]byte, []item.Warning, error) {
	format, _ := photograph.FormatOf(target)
	data, err := regular.Read(in.path, manifest.MaxFileBytes)
	if err != nil {
		return nil, nil, err
	}
	if o.strip {
		if stripped, err := passport.Strip(restored); err == nil {
			restored = stripped
		} else if !errors.Is(err, passport.ErrNone) { // of a mean
			return nil, nil, err
		}
	}
	file, err := o.encodeFrom(data, format, restored, img, r)
	if o.strip {
		return file, nil, err
	}
	return file, photograph.Losses(data, format), err
}

// encodeFrom is encode of a measurement's file.
func (o *restoreOptions) encodeFrom(data []byte, format photograph.Format, restored []byte, img *raster.Image, r *item.ValueRange) (_ []byte, err error) {
	var source *raster.Picture
	if !raster.IsNPY(data) {
		if source, err = raster.DecodePicture(data); err != nil {
			return nil, err
		}
	}
	switch {
	case format == photograph.PNG && source == nil:
		return restored, nil
	case format == photograph.PNG && source.Alpha == nil && r == nil:
		return photograph.Beside(restored, source, data, o.strip)
	}
	if img == nil {
		if img, err = raster.DecodeResult(restored); err != nil {
			return nil, err
		}
	}
	options := photograph.FileOptions{Format: format, Quality: o.quality, Strip: o.strip}
	if r != nil && source != nil {
		options.Range = &[2]float64{r[0], r[1]}
	}
	return encodeFile(img, source, data, restored, options)
}

// hasForm reports whether the existing restored picture of an input is in the form that the flags ask for.
func (o *restoreOptions) hasForm(in *picture, target string) bool {
	format, _ := photograph.FormatOf(target)
	file, failed := regular.Read(target, manifest.MaxFileBytes)
	source, err := regular.Read(in.source(), manifest.MaxFileBytes)
	if errors.Join(failed, err) != nil {
		return false
	}
	ok, err := photograph.HasForm(file, source, photograph.FileOptions{Format: format, Quality: o.quality, Strip: o.strip})
	return ok && err == nil
}
