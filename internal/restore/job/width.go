package job

import (
	"fmt"
	"strconv"

	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/restore/operator"
)

// Width estimates the blur of a measurement, a file of a picture or an array, see [photograph.EstimateWidth]. Widths are in pixels of the measurement.
func (l Look) Width(data []byte, shape photograph.BlurShape) (photograph.Width, error) {
	if !raster.IsNPY(data) {
		p, err := raster.DecodePicture(data)
		if err != nil {
			return photograph.Width{}, err
		}
		return photograph.EstimateWidth(p.Image, shape, qualityOf(data))
	}
	a, err := raster.DecodeMeasurement(data)
	if err != nil {
		return photograph.Width{}, err
	}
	if len(a.Shape) != 3 {
		return photograph.Width{}, fmt.Errorf("%w: its shape is %v", photograph.ErrNoWidth, a.Shape)
	}
	return photograph.EstimateWidth(&raster.Image{Channels: a.Shape[0], Height: a.Shape[1], Width: a.Shape[2], Pix: a.Data}, shape, 100)
}

// qualityOf is the quality of a file with lossy compression, 100 for others.
func qualityOf(data []byte) float64 {
	if !raster.IsLossy(data) {
		return 100
	}
	if raster.IsJPEG(data) {
		if s, err := operator.Builtin().Known(operator.JPEG).Stated(data); err == nil && s.Params != nil {
			return s.Params["quality"]
		}
	}
	return photograph.WebPQuality
}

// doubtWidth doubts a Gaussian blur that is stated far wider than that of the stored picture.
func (j *Job) doubtWidth() *Doubt {
	if j.Op.Width == "" || j.Item.Picture == nil {
		return nil
	}
	w, h := j.Item.RestoredSize()
	seen := raster.Crop(&raster.Image{Channels: j.Op.Image.Channels, Height: j.Op.Image.Height, Width: j.Op.Image.Width, Pix: j.Problem.Y}, w, h)
	stated := j.Op.Params[j.Op.Width]
	found, err := photograph.EstimateWidth(seen, photograph.Gaussian, j.quality)
	if err != nil {
		return nil
	}
	pixels := j.Op.Image.Length(stated)
	if pixels < photograph.TooWide*found.Pixels || pixels < photograph.TooWideHigh*found.High {
		return nil
	}
	std := WidthIn(found.Pixels, j.Op.Image)
	d := j.doubt("is wider than the blur of the picture")
	d.Setting, d.Std, d.Given = j.width(stated), std, j.ofOriginal(std)
	return d
}

// ofOriginal returns the parameter std of the original, of which the measurement may be a part: the same blur in pixels.
func (j *Job) ofOriginal(std float64) float64 {
	width, height, err := raster.ProbePicture(j.Original)
	if err != nil { // none
		return std
	}
	w, h := j.Item.RestoredSize()
	return std * float64(min(w, h)) / float64(min(width, height))
}

// WidthIn converts a width from pixels to the unit of operators' parameters, with two digits.
func WidthIn(pixels float64, image operator.Shape) float64 {
	x, _ := strconv.ParseFloat(strconv.FormatFloat(pixels*256/float64(min(image.Height, image.Width)), 'g', 2, 64), 64)
	return x
}
