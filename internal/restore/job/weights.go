package job

import (
	"fmt"
	"slices"

	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
)

// weigh gives the pixels of y weights in the data term where they do not tell equally much: none to those that the item's mask drops, or, in a stored picture without a mask, to
// dead and hot ones. For what needs a complete picture, such as the start of a run, their neighbours fill them.
func (s Loader) weigh(j *Job) error {
	if !j.Op.Weighable() {
		return nil
	}
	lost, err := j.lost()
	if err != nil {
		return err
	}
	if j.Item.Picture != nil && j.mask == nil {
		found := 0
		for i, bad := range j.outliers() {
			if bad && !lost[i] {
				lost[i] = true
				found++
			}
		}
		if found > 0 {
			j.warn(photograph.WarnPixels, fmt.Sprintf("%d pixels (%.2g %%) differ from all of their neighbours as dead and hot ones do: they are left out",
				found, 100*float64(found)/float64(len(lost))))
		}
	}
	dropped := 0
	for _, l := range lost {
		if l {
			dropped++
		}
	}
	if dropped == 0 {
		return nil
	}
	if float64(dropped) > photograph.FillShare*float64(len(lost)) {
		j.Plan = s.Engine.Fill(j.Plan)
	}
	j.measured = slices.Clone(j.Problem.Y)
	for _, p := range j.planes() {
		missing := make([]bool, len(p.v))
		for i, at := range p.at {
			missing[i] = lost[at%len(lost)]
		}
		p.fill(missing)
		for i, at := range p.at {
			j.Problem.Y[at] = p.v[i]
		}
	}
	j.Problem.Weights, j.Plan.Weighted = make([]float32, len(lost)), true
	for i := range lost {
		if !lost[i] {
			j.Problem.Weights[i] = 1
		}
	}
	return nil
}

// lost returns the pixels that the item's mask of y drops.
func (j *Job) lost() ([]bool, error) {
	out := make([]bool, j.pixels())
	if j.mask == nil {
		return out, nil
	}
	h, w := j.Op.Measurement[1], j.Op.Measurement[2]
	ph, pw := h, w
	if p := j.Item.Picture; p != nil {
		ph, pw = p.Height*h/j.Op.Image.Height, p.Width*w/j.Op.Image.Width
		if p.Transposed() {
			ph, pw = p.Width*h/j.Op.Image.Height, p.Height*w/j.Op.Image.Width
		}
	}
	d, err := j.Op.ScaleMask(j.mask, pw, ph)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", j.Item.Mask.Public(), err)
	}
	whole := raster.Extend(&raster.Image{Channels: 1, Height: ph, Width: pw, Pix: d.Data}, w, h)
	if !slices.ContainsFunc(whole.Pix, func(v float32) bool { return v != 0 }) {
		return nil, InputError("read mask %s: no pixel is observed; a mask is white where the picture is sound", j.Item.Mask.Public())
	}
	for i, v := range whole.Pix {
		out[i] = v == 0
	}
	return out, nil
}

// observed returns the entries of v, in the shape of y, that the data term uses.
func (j *Job) observed(v []float32) []float32 {
	if j.Problem.Weights == nil {
		return j.Op.Observed(v, j.Problem.Draw)
	}
	out := make([]float32, 0, len(v))
	for i, e := range v {
		if j.Problem.Weights[i%len(j.Problem.Weights)] != 0 {
			out = append(out, e)
		}
	}
	return out
}
