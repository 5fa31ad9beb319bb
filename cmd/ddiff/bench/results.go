package bench

import (
	"fmt"
	"io"
	"slices"

	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/operator"
)

// setting is a task, or a variant of PyTorch, with a batch size.
type setting struct {
	name  string
	batch int
}

// timing is the measurement of one campaign, in milliseconds per step of a batch.
type timing struct {
	network   float64 // the score network alone
	campaign  float64
	solver    float64 // the solver alone, 0 without PyTorch
	float32   float64 // the solver alone in float32
	provider  string
	precision onnxruntime.Precision
}

// share returns the network's share of the campaign's time.
func (t timing) share() float64 { return t.network / t.campaign }

// round has one measurement of each setting, and the milliseconds per step of the variants of PyTorch.
type round struct {
	timings map[setting]timing
	torch   map[setting]float64
}

// results are the measurements of all rounds.
type results struct {
	task     string    // that PyTorch solves
	settings []setting // tasks, in the order of measurement
	variants []setting // of PyTorch, none without it
	torch    string    // version
	rounds   []round   // at least one
}

// spread is the median of a sample, with its lowest and highest value.
type spread struct{ median, low, high float64 }

// spreadOf returns the spread of a sample, which must not be empty. The median of an even number is the lower one.
func spreadOf(sample []float64) spread {
	s := slices.Sorted(slices.Values(sample))
	return spread{s[(len(s)-1)/2], s[0], s[len(s)-1]}
}

// over returns the spread of a value over the rounds.
func (r results) over(value func(one round) float64) spread {
	var sample []float64
	for _, one := range r.rounds {
		sample = append(sample, value(one))
	}
	return spreadOf(sample)
}

// of returns the spread of a value of a setting over the rounds.
func (r results) of(s setting, value func(t timing) float64) spread {
	return r.over(func(one round) float64 { return value(one.timings[s]) })
}

// ratio returns the spread of PyTorch's time to that of our solver in the same round. Above 1, PyTorch is slower.
func (r results) ratio(v setting, ours func(t timing) float64) spread {
	return r.over(func(one round) float64 { return one.torch[v] / ours(one.timings[setting{r.task, v.batch}]) })
}

func ofCampaign(t timing) float64 { return t.campaign }
func ofSolver(t timing) float64   { return t.solver }
func inFloat32(t timing) float64  { return t.float32 }

// print prints one line per task and batch size; with PyTorch also one per batch size with the solver of ddiff, and one per variant and batch size.
func (r results) print(w io.Writer) {
	fmt.Fprintf(w, "%-18s %5s %12s %12s %7s %14s\n", "task", "batch", "network ms", "campaign ms", "share", "spread")
	for _, s := range r.settings {
		network, share := r.of(s, func(t timing) float64 { return t.network }), r.of(s, timing.share)
		fmt.Fprintf(w, "%-18s %5d %12.2f %12.2f %7.3f %6.3f..%.3f\n", s.name, s.batch, network.median, r.of(s, ofCampaign).median,
			share.median, share.low, share.high)
	}
	if len(r.variants) == 0 {
		return
	}
	fmt.Fprintf(w, "PyTorch %s, %s\n%-36s %5s %12s %7s %12s\n", r.torch, r.task, "variant", "batch", "step ms", "ratio", "spread")
	for _, s := range r.settings {
		if s.name != r.task {
			continue
		}
		precision := r.rounds[0].timings[s].precision
		fmt.Fprintf(w, "%-36s %5d %12.2f\n", "ddiff "+string(precision), s.batch, r.of(s, ofSolver).median)
		if precision != onnxruntime.FP32 {
			fmt.Fprintf(w, "%-36s %5d %12.2f\n", "ddiff "+string(onnxruntime.FP32), s.batch, r.of(s, inFloat32).median)
		}
	}
	for _, v := range r.variants {
		ratio := r.ratio(v, ofSolver)
		fmt.Fprintf(w, "%-36s %5d %12.2f %7.2f %6.2f..%.2f\n", v.name, v.batch, r.over(func(one round) float64 { return one.torch[v] }).median,
			ratio.median, ratio.low, ratio.high)
	}
}

// isLight reports whether the operator of a task costs little next to the network.
func isLight(s setting) bool {
	return slices.Contains([]string{
		operator.SuperResolution, operator.InpaintBox, operator.InpaintRandom, operator.GaussianDeblur, operator.HDR,
	}, s.name)
}

// lowest returns the lowest median of those settings that a condition accepts, as text.
func lowest(all []setting, accepts func(s setting) bool, median func(s setting) spread) string {
	var found []float64
	for _, s := range all {
		if accepts(s) {
			found = append(found, median(s).median)
		}
	}
	if len(found) == 0 {
		return "skipped"
	}
	return fmt.Sprintf("%.2f", slices.Min(found))
}

// summary returns the last line.
func (r results) summary(rounds int) string {
	share := func(s setting) spread { return r.of(s, timing.share) }
	first := r.rounds[0].timings[r.settings[0]]
	return fmt.Sprintf("share_light=%s share_heavy=%s vs_torch=%s vs_torch_float32=%s provider=%s precision=%s ms_per_step=%.1f rounds=%d of=%d",
		lowest(r.settings, isLight, share), lowest(r.settings, func(s setting) bool { return !isLight(s) }, share),
		lowest(r.variants, func(setting) bool { return true }, func(v setting) spread { return r.ratio(v, ofSolver) }),
		lowest(r.variants, inFloat32Variant, func(v setting) spread { return r.ratio(v, inFloat32) }),
		first.provider, first.precision, r.of(r.settings[0], ofCampaign).median, len(r.rounds), rounds)
}
