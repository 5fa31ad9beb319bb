package bench

import (
	"fmt"
	"io"
	"slices"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/restore/operator"
)

// setting is a task with a batch size.
type setting struct {
	task  string
	batch int
}

// timing is the measurement of one campaign, in milliseconds per step of a batch.
type timing struct {
	network   float64 // the score network alone
	campaign  float64
	solver    float64 // the solver alone, 0 if not measured
	float32   float64 // the solver alone in float32
	provider  string
	precision onnxruntime.Precision
}

// share returns the network's share of the campaign's time.
func (t timing) share() float64 { return t.network / t.campaign }

// round has one measurement of each setting.
type round map[setting]timing

// results are the measurements of all rounds.
type results struct {
	settings []setting // in the order of measurement
	rounds   []round   // at least one
}

// spread is the median of a sample, with its lowest and highest value.
type spread struct{ median, low, high float64 }

// spreadOf returns the spread of a sample, which must not be empty.
func spreadOf(sample []float64) spread {
	s := slices.Sorted(slices.Values(sample))
	return spread{(s[(len(s)-1)/2] + s[len(s)/2]) / 2, s[0], s[len(s)-1]}
}

// of returns the spread of a value of a setting over the rounds.
func (r results) of(s setting, value func(t timing) float64) spread {
	var sample []float64
	for _, one := range r.rounds {
		sample = append(sample, value(one[s]))
	}
	return spreadOf(sample)
}

func ofCampaign(t timing) float64 { return t.campaign }

// print prints one line per task and batch size. Solvers that were not measured have 0.
func (r results) print(w io.Writer) {
	fmt.Fprintf(w, "%-18s %5s %12s %12s %7s %14s %12s %12s\n", "task", "batch", "network ms", "campaign ms", "share", "spread", "solver ms", "float32 ms")
	for _, s := range r.settings {
		network, share := r.of(s, func(t timing) float64 { return t.network }), r.of(s, timing.share)
		solver, float32 := r.of(s, func(t timing) float64 { return t.solver }), r.of(s, func(t timing) float64 { return t.float32 })
		fmt.Fprintf(w, "%-18s %5d %12.2f %12.2f %7.3f %6.3f..%.3f %12.2f %12.2f\n", s.task, s.batch, network.median, r.of(s, ofCampaign).median,
			share.median, share.low, share.high, solver.median, float32.median)
	}
}

// isLight reports whether the operator of a task costs little next to the network.
func isLight(s setting) bool {
	return slices.Contains([]string{
		operator.SuperResolution, operator.InpaintBox, operator.InpaintRandom, operator.GaussianDeblur, operator.HDR,
	}, s.task)
}

// lowestShare returns the lowest median share of the settings with a light operator, or of the others, as text.
func (r results) lowestShare(light bool) string {
	var found []float64
	for _, s := range r.settings {
		if isLight(s) == light {
			found = append(found, r.of(s, timing.share).median)
		}
	}
	if len(found) == 0 {
		return "skipped"
	}
	return fmt.Sprintf("%.2f", slices.Min(found))
}

// summary returns the last line.
func (r results) summary(rounds int) string {
	first := r.rounds[0][r.settings[0]]
	return fmt.Sprintf("share_light=%s share_heavy=%s provider=%s precision=%s ms_per_step=%.1f rounds=%d of=%d", r.lowestShare(true), r.lowestShare(false),
		first.provider, first.precision, r.of(r.settings[0], ofCampaign).median, len(r.rounds), rounds)
}
