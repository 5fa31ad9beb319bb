package shard

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"ddiff/internal/redact"
	"ddiff/internal/regular"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/raster"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// hinted fills in the probe of a row that states the digest and the size of its image and names no other file. Such a row needs
// no read; the worker checks the digest.
func (s *Sharder) hinted(row *manifest.Row, p *manifest.Probe) bool {
	if row.Image == "" || row.ImageSHA256 == "" || row.Width <= 0 || row.Height <= 0 ||
		row.Measurement != "" || row.Overrides.Mask != "" || row.Overrides.Kernel != "" || len(manifest.TaskFiles(*row, s.cfg.Spec)) > 0 {
		return false
	}
	p.ImageSHA256 = row.ImageSHA256
	row.Err = s.workingSize(row.Width, row.Height, p)
	return true
}

// probe reads the files of a row and returns their digests and the working size of the image. It decodes the pixels of a measurement whose noise level is estimated, and no others. path
// is the file of an error, otherwise the last file.
func (s *Sharder) probe(ctx context.Context, row manifest.Row) (p manifest.Probe, path string, err error) {
	var measurement, mask []byte
	auto := manifest.EstimatedTasks(row, s.cfg.Spec)
	for _, f := range []struct {
		path   string
		digest *string
		use    func(data []byte) error
	}{
		{row.Image, &p.ImageSHA256, func(data []byte) error { return s.imageSize(data, &p) }},
		{row.Measurement, &p.MeasurementSHA256, func(data []byte) error { measurement = data; return nil }},
		{row.Overrides.Mask, &p.MaskSHA256, func(data []byte) error { mask = data; return nil }},
		{row.Overrides.Kernel, &p.KernelSHA256, nil},
	} {
		if f.path == "" {
			continue
		}
		path = f.path
		data, digest, err := s.read(ctx, path)
		if err != nil {
			return p, path, err
		}
		*f.digest = digest
		if want := row.ImageSHA256; f.digest == &p.ImageSHA256 && want != "" && want != *f.digest {
			return p, path, fmt.Errorf("read %s: its SHA-256 is %.12s, the row states %.12s; correct the row or put the file back", redact.Address(path), *f.digest, want)
		}
		if f.use == nil {
			continue
		}
		if err := f.use(data); err != nil {
			return p, path, fmt.Errorf("read %s: %w", redact.Address(path), err)
		}
	}
	given := map[string][]byte{} // masks and kernels of tasks
	for _, path := range manifest.TaskFiles(row, s.cfg.Spec) {
		data, digest, err := s.read(ctx, path)
		if err != nil {
			return p, path, err
		}
		if p.TaskFiles == nil {
			p.TaskFiles = map[string]string{}
		}
		given[path], p.TaskFiles[path] = data, digest
	}
	if measurement != nil {
		if err := s.statedParams(row, measurement, &p); err != nil {
			return p, path, fmt.Errorf("read %s: %w", redact.Address(row.Measurement), err)
		}
	}
	if row.Image == "" && measurement != nil {
		if err := s.measuredSize(row, measurement, &p); err != nil {
			return p, path, fmt.Errorf("read %s: %w", redact.Address(row.Measurement), err)
		}
	}
	if measurement != nil && len(auto) > 0 {
		p.Estimates = s.estimates(auto, &p, measurement, func(t item.Task) []byte {
			if mask == nil {
				return given[t.Mask]
			}
			return mask
		})
	}
	return p, path, nil
}

// read reads a file, which is then the witness of its source, and returns its SHA-256.
func (s *Sharder) read(ctx context.Context, path string) (data []byte, digest string, err error) {
	if data, err = s.cfg.Sources.Get(ctx, path); err != nil {
		return nil, "", fmt.Errorf("read %s: %w", redact.Address(path), err)
	}
	s.witness.set(path)
	return data, regular.SHA256(data), nil
}

func (s *Sharder) imageSize(data []byte, p *manifest.Probe) error {
	w, h, err := raster.Probe(data)
	if err != nil {
		return err
	}
	return s.workingSize(w, h, p)
}

// workingSize computes the working size of an image from its size in pixels.
func (s *Sharder) workingSize(w, h int, p *manifest.Probe) (err error) {
	d := s.cfg.Spec.Dataset
	p.Width, p.Height, err = raster.Shape(string(d.Fit), w, h, d.Size, s.cfg.Prior.Card.MultipleOf)
	return err
}

// measuredSize computes the image size from the shape of a measurement without a truth. The measurement must belong to one
// task, all settings of which lead to the same size.
func (s *Sharder) measuredSize(row manifest.Row, data []byte, p *manifest.Probe) error {
	name := row.Overrides.Task
	var tasks []item.Task
	for _, t := range s.cfg.Spec.Tasks {
		if row.Overrides.Task != "" && t.Name != name {
			continue
		}
		if tasks = append(tasks, t); t.Name != tasks[0].Name {
			return errors.New("a measurement belongs to one task: add a column task, or ask for one task only")
		}
		name = t.Name
	}
	if len(tasks) == 0 {
		tasks = []item.Task{{Name: name}}
	}
	for i, task := range tasks {
		params := maps.Clone(task.Params)
		if params == nil {
			params = map[string]float64{}
		}
		maps.Copy(params, row.Overrides.Params)
		shape, err := s.look().Shape(name, params, data)
		switch {
		case err != nil:
			return err
		case i > 0 && (p.Width != shape.Width || p.Height != shape.Height):
			return fmt.Errorf("the settings of task %s lead to images of %d×%d and of %d×%d pixels; ask for one of them", name, p.Width, p.Height, shape.Width, shape.Height)
		}
		p.Width, p.Height = shape.Width, shape.Height
	}
	return nil
}

// look finds what the bytes of measurements tell.
func (s *Sharder) look() job.Look {
	return job.Look{Operators: s.cfg.Catalogue.Operators, Card: &s.cfg.Prior.Card}
}

// statedParams reads the operator parameters that a measurement's file states, for each task of the row.
func (s *Sharder) statedParams(row manifest.Row, data []byte, p *manifest.Probe) error {
	p.Stated = map[string]manifest.Stated{}
	for _, name := range manifest.RowTasks(row, s.cfg.Spec) {
		stated, err := s.look().Stated(name, data)
		if err != nil {
			return err
		}
		p.Stated[name] = stated
	}
	return nil
}
