package job

import (
	"encoding/json"
	"errors"
	"fmt"

	"ddiff/restore/item"
	"ddiff/restore/operator"
	"ddiff/restore/raster"
)

// Artifact is a file beside a result.
type Artifact struct {
	Name string
	Data []byte
}

// Artifacts encodes the files beside a result, except for the restored image.
func (j *Job) Artifacts() ([]Artifact, error) {
	var out []Artifact
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
	if j.truth != nil {
		errs = append(errs, png(item.FileTruth, j.truth))
	}
	errs = append(errs, png(item.FileMeasurement, j.shown()))
	if j.Item.Unclipped {
		img := j.Restored()
		errs = append(errs, npy(item.FileUnclipped, []int{img.Channels, img.Height, img.Width}, img.Pix))
	}
	curves, err := json.Marshal(j.Trace())
	errs = append(errs, add(item.FileTrace, curves, err))
	arrays, err := j.Arrays()
	return append(out, arrays...), errors.Join(append(errs, err)...)
}

// Arrays encodes the measurement, and the mask or kernel: the files beside a result that a passport names.
func (j *Job) Arrays() ([]Artifact, error) {
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
	c := j.solution.Curves
	t := item.Trace{item.CurveTimestep: {}}
	for _, at := range c.Time {
		t[item.CurveTimestep] = append(t[item.CurveTimestep], float64(at))
	}
	for _, curve := range c.Curves {
		t[curve.Name] = curve.Values
	}
	return t
}
