package gpuworker

import (
	"time"

	"ddiff/internal/record"
	"ddiff/internal/restore/solver"
)

// A heartbeat has maxSolving items of a batch and maxPoints values of a curve.
const (
	maxSolving = 8
	maxPoints  = 32
)

// solvingOf describes a batch for the worker's heartbeat. perImage is the time of a step of one image, 0 if unknown.
func solvingOf(tasks []*task, curves []solver.Curves, step, steps int, perImage time.Duration) *record.Solving {
	out := &record.Solving{Campaign: tasks[0].assigned.Campaign, Step: step, Steps: steps}
	if perImage > 0 {
		out.Rate = float64(time.Second) / float64(perImage)
	}
	for i, t := range tasks[:min(len(tasks), maxSolving)] {
		it := record.SolvingItem{ID: t.Item.ID, Name: t.Item.Name}
		norms := curves[i].Curve("data_norm")
		if len(norms) > 0 {
			it.Stride = (len(norms) + maxPoints - 1) / maxPoints
			for j := it.Stride; j <= len(norms); j += it.Stride {
				it.DataNorm = append(it.DataNorm, float32(norms[j-1]))
			}
		}
		out.Items = append(out.Items, it)
	}
	return out
}
