package run

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"ddiff/internal/cli"
	"ddiff/internal/restore/metric"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
)

// deviationScale enlarges the deviation picture: white is a quarter of the range from black to white.
const deviationScale = 4

// spreadNames tell the pictures of several runs from their restorations.
var spreadNames = []string{"mean", "deviation"}

// writeSpread writes the mean picture of several runs, and the picture of the standard deviation of their pixels; w.mu is locked. With replace they may
// replace others, which have no passport.
func (w *pictureWriter) writeSpread(in *picture, tail string, runs []restored, replace bool) error {
	var images []*raster.Image
	var form *raster.Picture
	for _, res := range runs {
		img, err := raster.Decode(res.picture)
		if err == nil && form == nil {
			form, err = raster.DecodePicture(res.picture)
		}
		if err != nil {
			return fmt.Errorf("read run %d: %w", res.Item.Run, err)
		}
		images = append(images, img)
	}
	mean, deviation := spread(images)
	if equal(images) { // also beside JSON: the deviation would say that the pixels are certain
		fmt.Fprintln(w.stderr, cli.Printable(in.name+": all runs are equal: the settings draw no noise; give none of --method, --preset and --prior, or --method ddiff --solver data_step=exact --solver noise=full"))
	}
	for _, out := range []struct {
		name string
		img  *raster.Image
	}{{spreadNames[0], mean}, {spreadNames[1], deviation}} {
		name := strings.TrimPrefix(tail+"."+out.name, ".")
		data, err := raster.EncodePicture(out.img, *form)
		if err != nil {
			return fmt.Errorf("encode the %s of the runs: %w", name, err)
		}
		target := in.target(w.into, name)
		if err := errors.Join(checkLength(target), w.checkNoInput(in, target)); err != nil {
			return err
		}
		if data, _, err = w.encode(in, target, data, nil, nil); err != nil {
			return fmt.Errorf("encode the %s of the runs: %w", name, err)
		}
		old, _ := passportOf(target)
		if err := writeNew(target, data, w.force || replace && old == nil); err != nil {
			return err
		}
		if w.JSON {
			w.printJSON(restoration{Input: in.name, Output: target, Outcome: item.OutcomeDone, Task: runs[0].Item.Task})
		} else {
			fmt.Fprintln(w.stdout, cli.Printable(relative(target)))
		}
	}
	return nil
}

// smallestResidual returns the run with the smallest mean square residual: the rule min_misfit of a report.
func smallestResidual(runs []restored) restored {
	merit := func(r restored) float64 { return -r.Metrics.Of(metric.NameResidual) } // NaN is the least
	return slices.MaxFunc(runs, func(a, b restored) int { return cmp.Compare(merit(a), merit(b)) })
}

// spread returns the mean of images, and deviationScale times the standard deviation of their values in parts of the range from black to white: black
// is none.
func spread(images []*raster.Image) (mean, deviation *raster.Image) {
	mean, deviation = images[0].Clone(), images[0].Clone()
	n := float64(len(images))
	for i := range mean.Pix {
		var sum, squares float64
		for _, img := range images {
			sum += float64(img.Pix[i])
		}
		for _, img := range images {
			d := float64(img.Pix[i]) - sum/n
			squares += d * d
		}
		mean.Pix[i] = float32(sum / n)
		share := deviationScale * math.Sqrt(squares/(n-1)) / 2
		deviation.Pix[i] = float32(2*min(share, 1) - 1)
	}
	return mean, deviation
}

// equal reports whether all images have the same values.
func equal(images []*raster.Image) bool {
	return !slices.ContainsFunc(images, func(img *raster.Image) bool { return !slices.Equal(img.Pix, images[0].Pix) })
}
