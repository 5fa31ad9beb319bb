package shard

import (
	"maps"
	"slices"

	"ddiff/internal/restore/job"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// estimates returns the noise levels of a measurement for tasks with the noise level auto. maskOf returns the bytes of a task's mask, or nil.
func (s *Sharder) estimates(tasks []item.Task, p *manifest.Probe, measurement []byte, maskOf func(item.Task) []byte) []manifest.Estimate {
	s.estimating.Lock()
	defer s.estimating.Unlock()
	out := make([]manifest.Estimate, len(tasks))
	for i, t := range tasks {
		same := func(other item.Task) bool {
			return other.Name == t.Name && other.Mask == t.Mask && maps.Equal(other.Params, t.Params)
		}
		if k := slices.IndexFunc(tasks, same); k < i {
			out[i] = out[k] // they differ in their settings
			continue
		}
		out[i].Sigma, out[i].Err = s.look().Sigma(job.Noisy{
			Task: t.Name, Params: t.Params, Own: t.Operator != "", Width: p.Width, Height: p.Height,
			Measurement: measurement, Mask: maskOf(t), Range: s.cfg.Spec.Dataset.MeasurementRange, Form: s.cfg.Spec.Dataset.DrawForm(),
		})
	}
	return out
}
