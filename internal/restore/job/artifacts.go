package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// Artifact is a file beside a result.
type Artifact struct {
	Name string
	Data []byte
}

// artifacts encodes the files beside a result, except for the restored image. arrays are among them.
func (j *Job) artifacts(arrays []Artifact) (out []Artifact, err error) {
	add := func(name string, data []byte, err error) error {
		if err != nil {
			return fmt.Errorf("encode %s: %w", name, err)
		}
		out = append(out, Artifact{name, data})
		return nil
	}
	png := func(name string, img *raster.Image) error {
		data, err := raster.EncodePNG(img)
		return add(name, data, err)
	}
	npy := func(name string, dims []int, values []float32) error {
		data, err := raster.EncodeNPY(dims, values)
		return add(name, data, err)
	}
	var errs []error
	if j.file != nil {
		errs = append(errs, add(item.FileTruth, j.file, nil))
	} else if j.truth != nil {
		data, err := raster.EncodePicture(j.truth, raster.Picture{Bits: j.bits})
		errs = append(errs, add(item.FileTruth, data, err))
	}
	errs = append(errs, png(item.FileMeasurement, j.shown()))
	if j.Item.Unclipped {
		img := j.Restored()
		errs = append(errs, npy(item.FileUnclipped, []int{img.Channels, img.Height, img.Width}, img.Pix))
	}
	if _, states := j.States(); len(states) > 0 {
		var values []float32
		for _, x := range states {
			values = append(values, x.Pix...)
		}
		dims := []int{len(states), states[0].Channels, states[0].Height, states[0].Width}
		errs = append(errs, npy(item.FileStates, dims, values), png(item.FileStatesSheet, contactSheet(states)))
	}
	curves, err := json.Marshal(j.Trace())
	errs = append(errs, add(item.FileTrace, curves, err))
	return append(out, arrays...), errors.Join(errs...)
}

// arrays encodes the measurement, and the mask or kernel: the files beside a result that a passport names.
func (j *Job) arrays() ([]Artifact, error) {
	values := j.Problem.Y
	if j.measured != nil {
		values = j.measured
	}
	y, err := raster.EncodeNPY(j.Op.Measurement, values)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", item.FileData, err)
	}
	out := []Artifact{{item.FileData, y}}
	for _, draw := range []*operator.Draw{j.draw, j.mask} {
		if draw == nil {
			continue
		}
		name := draw.Name + ".npy"
		data, err := raster.EncodeNPY(draw.Dims, draw.Data)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", name, err)
		}
		out = append(out, Artifact{name, data})
	}
	return out, nil
}

// Trace returns the curves of a solved item, one entry per step.
func (j *Job) Trace() item.Trace {
	c := j.Solution.Curves
	t := item.Trace{item.CurveTimestep: {}}
	for _, at := range c.Time {
		t[item.CurveTimestep] = append(t[item.CurveTimestep], float64(at))
	}
	for _, curve := range c.Curves {
		t[curve.Name] = curve.Values
	}
	return t
}

// sheetColumns is the largest number of pictures beside each other in a contact sheet.
const sheetColumns = 8

// contactSheet shows images of one shape in rows, from left to right; unused places are black.
func contactSheet(images []*raster.Image) *raster.Image {
	columns := min(sheetColumns, len(images))
	rows := (len(images) + columns - 1) / columns
	h, w := images[0].Height, images[0].Width
	sheet := &raster.Image{Channels: images[0].Channels, Height: rows * h, Width: columns * w}
	sheet.Pix = slices.Repeat([]float32{-1}, sheet.Channels*sheet.Height*sheet.Width)
	for i, x := range images {
		for line := range x.Channels * h {
			c, y := line/h, line%h
			copy(sheet.Pix[(c*sheet.Height+i/columns*h+y)*sheet.Width+i%columns*w:], x.Pix[line*w:(line+1)*w])
		}
	}
	return sheet
}

// States returns the states of a solved item that were kept, as images like that of Restored, and the steps after which they were the state.
func (j *Job) States() (steps []int, images []*raster.Image) {
	s := j.Op.Image
	w, h := j.Item.RestoredSize()
	for _, x := range j.Solution.Kept.Images {
		images = append(images, j.turn(&raster.Image{Channels: s.Channels, Height: s.Height, Width: s.Width, Pix: x}, w, h))
	}
	return j.Solution.Kept.Steps, images
}
