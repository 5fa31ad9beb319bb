package method

import (
	"math"
	"slices"

	"ddiff/restore/onnx"
)

// interpolant is a time t of the straight path x_t = (1 − t)·x + t·ε of flow matching, in terms of the prior's schedule: v = scale·x_t is x + level·ε.
// Beyond the noise of the schedule, as at t = 1, level is that of its last time.
type interpolant struct {
	t, next      float64 // time of the step and of the next one, 0 after the last
	time         int     // of the schedule, nearest to level
	scale, level float64
}

// interpolants are n steps in equal distances from t = 1 towards 0.
func interpolants(s Schedule, n int) []interpolant {
	out := make([]interpolant, n)
	for i := range out {
		t := 1 - float64(i)/float64(n)
		level := min(t/(1-t), noiseLevel(s.AlphaBar[s.Steps()-1]))
		out[i] = interpolant{
			t: t, next: 1 - float64(i+1)/float64(n), time: nearestTime(s, level, s.Steps()),
			scale: math.Hypot(1, level) / math.Hypot(1-t, t), level: level,
		}
	}
	return out
}

// step returns the numbers that destination reads. Near t = 0 several steps have one time of the schedule: the time of a step is the number of those after it.
func (p interpolant) step(after, evaluations int) Step {
	return Step{
		Time: after, Times: map[string][]int{"flow": slices.Repeat([]int{p.time}, evaluations)}, Std: map[string]float64{},
		Scalars: map[string]float64{"t": p.t, "level": p.level, "input": 1 / math.Hypot(1, p.level)},
	}
}

// destination returns the prior's clean image of v = x + level·ε, not clipped, by evaluation i of the step.
func (b *Builder) destination(v onnx.Value, i int) onnx.Value {
	return denoise(b, v, b.Moment("flow", b.Index(i)), b.Planned("level"), b.Planned("input"))
}
