package page

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/entry"
	"ddiff/internal/report/statistic"
	"ddiff/internal/report/sweep"
	"ddiff/internal/restore/metric"
	"ddiff/restore/item"
)

// fact is one line about the campaign.
type fact struct{ Name, Value string }

// lead says in two sentences what was run: what was degraded how, and what restored it.
func lead(c Campaign, s aggregate.Summary, shown *Gallery) string {
	images := make(map[uint64]bool)
	problems := make(map[sweep.Problem]bool)
	var tasks, noise, sizes, methods, priors, presets, devices, seeds []string
	add := func(to *[]string, text string) {
		if text != "" && !slices.Contains(*to, text) {
			*to = append(*to, text)
		}
	}
	seconds, truth, runs, done := 0.0, false, 0, 0
	for _, t := range shown.Tasks {
		for _, e := range t.Done {
			images[e.Image], problems[e.Problem] = true, true
			truth = truth || e.Has(item.FileTruth) || statistic.Defined(e.Of(metric.NamePSNR))
			if v := e.Of(entry.Seconds); statistic.Defined(v) {
				seconds += v
			}
			runs, done = max(runs, e.Run+1), done+1
			add(&tasks, c.Tasks.Label(e.Task))
			add(&noise, e.NoiseText("σ\u00a0"))
			add(&sizes, fmt.Sprintf("%d\u00a0×\u00a0%d", e.Width, e.Height))
			add(&methods, e.Method)
			add(&priors, cmp.Or(c.Prior, sweep.ShortPrior(e.Prior)))
			add(&presets, e.Preset)
			add(&devices, e.Provider)
			add(&seeds, strconv.FormatUint(e.Seed, 10))
		}
	}
	if done == 0 {
		return ""
	}
	first := degraded(len(images), len(problems), truth, tasks, noise, sizes)
	second := fmt.Sprintf("Restored by %s", few(methods, "methods"))
	if len(s.Rows) > len(problems)*len(methods) {
		second += " with several settings"
	}
	if len(priors) == 1 {
		second += ", with the prior " + priors[0]
	} else if len(priors) > 1 {
		second += fmt.Sprintf(", with %d priors", len(priors))
	}
	if len(presets) > 0 {
		second += " and preset " + few(presets, "presets")
	}
	if len(seeds) == 1 {
		second += ", seed " + seeds[0]
	}
	if runs > 1 {
		second += ", " + strconv.Itoa(runs) + " runs of each"
	}
	if len(devices) > 0 {
		second += ", on " + few(devices, "devices")
	}
	if seconds > 0 {
		second += ", in " + span(seconds) + " of solver time"
	}
	return capitalized(first) + ". " + second + "."
}

// degraded is the first sentence.
func degraded(images, problems int, truth bool, tasks, noise, sizes []string) string {
	first := inWords(images, "image was", "images were") + " degraded"
	if !truth {
		first = inWords(images, "measurement", "measurements") + " without a truth"
	}
	if len(tasks) == 1 {
		first += " for " + lowerFirst(tasks[0])
	} else {
		first += " for " + inWords(len(tasks), "task", "tasks")
	}
	if problems > len(tasks) {
		first += ", in " + strconv.Itoa(problems) + " ways in all"
	}
	first += ", with noise of " + few(noise, "levels")
	if len(sizes) <= 3 {
		first += ", at " + enumerate(sizes) + "\u00a0pixels"
	}
	return first
}

func lowerFirst(text string) string {
	if len(text) > 1 && text[1] >= 'a' {
		return strings.ToLower(text[:1]) + text[1:]
	}
	return text
}

func capitalized(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// inWords writes numbers up to twelve as words.
func inWords(n int, one, many string) string {
	words := []string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}
	if n == 1 {
		return "one " + one
	}
	if n < len(words) {
		return words[n] + " " + many
	}
	return strconv.Itoa(n) + " " + many
}

// few lists up to three texts, and counts more.
func few(texts []string, many string) string {
	if len(texts) > 3 {
		return strconv.Itoa(len(texts)) + " " + many
	}
	return enumerate(texts)
}

func enumerate(texts []string) string {
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:len(texts)-1], ", ") + " and " + texts[len(texts)-1]
}

// span is a duration in one unit.
func span(seconds float64) string {
	for _, unit := range []struct {
		length float64
		name   string
	}{{86400, "days"}, {3600, "hours"}, {60, "minutes"}} {
		if n := seconds / unit.length; n >= 2 {
			return strconv.Itoa(int(math.Round(n))) + "\u00a0" + unit.name
		}
	}
	return strconv.FormatFloat(seconds, 'g', 2, 64) + "\u00a0seconds"
}

// campaignFacts say how the results came about.
func campaignFacts(c Campaign, s aggregate.Summary, l *Listing, shown *Gallery) []fact {
	var facts []fact
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, fact{name, value})
		}
	}
	prior := c.Prior
	if prior != "" && c.PriorLicence != "" {
		prior += " (" + c.PriorLicence + ")"
	}
	if first := s.ResolvedRow(); !s.Varying.Prior && first != nil { // otherwise a column of the table has it
		add("Prior", strings.TrimSpace(prior+" SHA-256 "+first.Prior))
	}
	add("Outputs", strings.Join(c.Outputs, ", "))
	if len(c.Outputs) == 0 {
		add("Seed", strconv.FormatUint(c.Seed, 10))
	}
	if !l.first.IsZero() {
		add("Restored", moment(l.first)+" to "+moment(l.last))
	}
	computed := make(map[string]bool)
	for _, t := range shown.Tasks {
		for _, e := range t.Done {
			computed[device(e)] = true
		}
	}
	delete(computed, "")
	add("Computed on", strings.Join(slices.Sorted(maps.Keys(computed)), "; "))
	add("Scores", strings.Join(slices.Sorted(maps.Values(s.MetricIDs)), ", "))
	return facts
}

// device is where an item was computed, with the form of the network.
func device(e *entry.Entry) string {
	text := strings.TrimSuffix(e.Provider+", "+e.Used, ", ")
	if e.Form != "" {
		text += ", form " + e.Form
	}
	return text
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
