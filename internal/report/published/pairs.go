package published

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/sweep"
	"ddiff/internal/restore/metric"
)

// publishedPair is one line of the comparison: figures of the results, of the publication, or of both.
type publishedPair struct {
	task   string
	ours   *aggregate.Row
	theirs row // nil for none
	// differs names the circumstances in which both differ, as far as both are known.
	differs []string
}

// pairs lists the rows of the summary with the published rows of the same task and method, and the published methods that
// the summary lacks, task by task. Further counts the published tasks that the summary lacks.
func (p *Figures) pairs(s aggregate.Summary) (pairs []publishedPair, further int) {
	var tasks []string
	for i := range s.Rows {
		if r := &s.Rows[i]; r.Resolved() && !slices.Contains(tasks, r.Task) {
			tasks = append(tasks, r.Task)
		}
	}
	for _, task := range tasks {
		var known []string
		for i := range s.Rows {
			r := &s.Rows[i]
			if r.Task != task || !r.Resolved() {
				continue
			}
			pair := publishedPair{task: task, ours: r, theirs: p.find(task, r.Method)}
			if pair.theirs != nil {
				pair.differs = p.differences(ourConditions(r, s), pair.theirs)
			}
			known = append(known, r.Method)
			pairs = append(pairs, pair)
		}
		for _, r := range p.rows {
			if r["task"] == task && !slices.Contains(known, r["method"]) {
				pairs = append(pairs, publishedPair{task: task, theirs: r})
			}
		}
	}
	absent := make(map[string]bool)
	for _, r := range p.rows {
		if !slices.Contains(tasks, r["task"]) {
			absent[r["task"]] = true
		}
	}
	return pairs, len(absent)
}

// ourConditions are the circumstances of a row. Data has no name in results.
func ourConditions(r *aggregate.Row, s aggregate.Summary) map[string]string {
	size, _, _ := strings.Cut(r.Size, " ")
	_, steps, _ := strings.Cut(";"+r.Settings, ";steps=")
	steps, _, _ = strings.Cut(steps, ";")
	runs := ""
	if r.Measurements > 0 {
		runs = sweep.Exact(float64(r.Runs) / float64(r.Measurements))
	}
	chosen := ""
	if r.Chosen {
		chosen = string(s.Rule)
	}
	return map[string]string{
		conditionSelect: chosen,
		conditionImages: strconv.Itoa(r.Images), conditionSize: size, conditionSigma: r.NoiseText(""),
		conditionPreset: r.Preset, conditionSteps: steps, conditionRuns: runs, conditionPrior: r.Prior,
		conditionMetrics: strings.Join(ourMetrics(s.MetricIDs), " "),
	}
}

// networkDigest is the end of the id of a metric with a network.
var networkDigest = regexp.MustCompile(fmt.Sprintf(`:[0-9a-f]{%d}$`, metric.MinDigest))

// ourMetrics are the versions of the scores that publications report, without the digests of networks.
func ourMetrics(ids map[string]string) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		if name == "psnr" || name == "ssim" || strings.HasPrefix(name, "lpips") {
			out = append(out, networkDigest.ReplaceAllString(ids[name], ""))
		}
	}
	return out
}

// otherMetrics reports whether both have a version of a metric, and not the same. All LPIPS are one metric, whatever their network: the column
// has any of them.
func otherMetrics(ours, theirs string) bool {
	return slices.ContainsFunc(strings.Fields(ours), func(our string) bool {
		return slices.ContainsFunc(strings.Fields(theirs), func(their string) bool {
			lpips := strings.HasPrefix(our, "lpips") && strings.HasPrefix(their, "lpips")
			return (lpips || metric.NameOf(our) == metric.NameOf(their)) && our != their
		})
	})
}

// differences names the conditions with different values. Data has no name in results, and a prior only if it is one of
// Priors, which no publication used.
func (p *Figures) differences(ours, theirs map[string]string) []string {
	var out []string
	for _, c := range publishedConditions() {
		differ := ours[c] != theirs[c]
		switch c {
		case conditionData:
			differ = false
		case conditionMetrics:
			differ = otherMetrics(ours[c], theirs[c])
		case conditionPrior:
			differ = p.Priors[ours[c]] != ""
		}
		if differ && theirs[c] != "" {
			out = append(out, c)
		}
	}
	return out
}

// verdict states whether the pairs are comparable, in one sentence that names the circumstances of both sides.
func (p *Figures) verdict(pairs []publishedPair, s aggregate.Summary) string {
	values := map[string][2][]string{} // condition: ours, theirs
	differing := map[string]bool{}
	paired := false
	for _, pair := range pairs {
		if pair.ours == nil || pair.theirs == nil {
			continue
		}
		paired = true
		for _, c := range pair.differs {
			differing[c] = true
		}
		ours := ourConditions(pair.ours, s)
		ours[conditionPrior] = cmp.Or(p.Priors[ours[conditionPrior]], sweep.ShortPrior(ours[conditionPrior]))
		for _, c := range publishedConditions() {
			v := values[c]
			for side, text := range []string{ours[c], pair.theirs[c]} {
				if text != "" && !slices.Contains(v[side], text) {
					v[side] = append(v[side], text)
				}
			}
			values[c] = v
		}
	}
	if !paired {
		return "no method of these results has published figures"
	}
	describe := func(side int) string {
		var parts []string
		for _, c := range publishedConditions() {
			if v := values[c][side]; len(v) > 0 {
				parts = append(parts, c+" "+strings.Join(v, " or "))
			}
		}
		return strings.Join(parts, ", ")
	}
	if len(differing) == 0 {
		return fmt.Sprintf("comparable, if the images are those of %s and the prior %s is the %s, which ddiff cannot check",
			cmp.Or(strings.Join(values[conditionData][1], " or "), "the publication"),
			strings.Join(values[conditionPrior][0], " or "), cmp.Or(strings.Join(values[conditionPrior][1], " or "), "publication's"))
	}
	var names []string
	for _, c := range publishedConditions() {
		if differing[c] {
			names = append(names, c)
		}
	}
	return fmt.Sprintf("NOT COMPARABLE, because of %s. Ours: %s. Theirs: %s", strings.Join(names, ", "), describe(0), describe(1))
}
