package testbed

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/restore/item"
)

// Attributes of the spans of an item's attempt.
const (
	attributeCampaign = "ddiff.campaign"
	attributeItem     = "ddiff.item.id"
	attributeAttempt  = "ddiff.attempt"
	attributeWorker   = "ddiff.worker"
	attributeDevice   = "ddiff.device"
)

// spanStages are the stages of an attempt that ends done, each with a span of its own.
var spanStages = []string{"fetch", "measure", "restore", "score", "write", "settle"}

// spanIdentity are the attributes of every span of an item's attempt.
var spanIdentity = []string{attributeCampaign, attributeItem, attributeAttempt, attributeWorker, attributeDevice}

// traces are received spans by trace and id.
type traces map[string]map[string]span

func newTraces(spans []span) traces {
	t := traces{}
	for _, s := range spans {
		if t[s.Trace] == nil {
			t[s.Trace] = map[string]span{}
		}
		t[s.Trace][s.ID] = s
	}
	return t
}

func (t traces) count() (n int) {
	for _, spans := range t {
		n += len(spans)
	}
	return n
}

// roots returns the root spans of attempts at the items of a campaign.
func (t traces) roots(campaign string) []span {
	var all []span
	for _, spans := range t {
		for _, s := range spans {
			if s.Parent == "" && s.Kind == kindConsumer && s.Attributes[attributeCampaign] == campaign {
				all = append(all, s)
			}
		}
	}
	return all
}

// orphans returns the spans whose parent did not arrive.
func (t traces) orphans() []span {
	var all []span
	for _, spans := range t {
		for _, s := range spans {
			if _, ok := spans[s.Parent]; s.Parent != "" && !ok {
				all = append(all, s)
			}
		}
	}
	return all
}

// brokenLinks returns the spans with a link to a span that did not arrive.
func (t traces) brokenLinks() []span {
	var all []span
	for _, spans := range t {
		for _, s := range spans {
			for _, l := range s.Links {
				if _, ok := t[l.Trace][l.ID]; !ok {
					all = append(all, s)
					break
				}
			}
		}
	}
	return all
}

// checkAttempts checks the traces of a campaign whose items are done: each result names a trace with one root span, which links to the
// span that published the item, and with a span for each stage. Every span of the trace has the identity of the attempt.
func (t traces) checkAttempts(campaign string, results map[string]item.Result) []error {
	var problems []error
	report := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	for id, r := range results {
		spans := t[r.TraceID]
		if len(spans) == 0 {
			report("item %s: no span of its trace %q arrived", id, r.TraceID)
			continue
		}
		var roots []span
		names := map[string]bool{}
		for _, s := range spans {
			names[s.Name] = true
			if s.Parent == "" {
				roots = append(roots, s)
			}
			for _, key := range spanIdentity {
				if s.Attributes[key] == "" {
					report("item %s: span %q has no attribute %s", id, s.Name, key)
				}
			}
			if got := s.Attributes[attributeItem]; got != id {
				report("item %s: span %q names item %q", id, s.Name, got)
			}
			if got := s.Attributes[attributeWorker]; got != r.Worker {
				report("item %s: span %q names worker %q, the result %q", id, s.Name, got, r.Worker)
			}
			if s.Attributes["messaging.operation.name"] != "" {
				problems = append(problems, checkMessaging(s)...)
			}
		}
		for _, stage := range spanStages {
			if !names[stage] {
				report("item %s: its trace has no span of the stage %s: %v", id, stage, slices.Sorted(maps.Keys(names)))
			}
		}
		if len(roots) != 1 {
			report("item %s: its trace has %d root spans, want one", id, len(roots))
			continue
		}
		root := roots[0]
		if root.Kind != kindConsumer || root.Attributes["messaging.operation.type"] != "process" {
			report("item %s: the root span %q has kind %d and the operation %q, want a consumer that processes", id, root.Name, root.Kind,
				root.Attributes["messaging.operation.type"])
		}
		if len(root.Links) == 0 {
			report("item %s: its root span has no link to the span that published it", id)
		}
		for _, l := range root.Links {
			if p, ok := t[l.Trace][l.ID]; ok && (p.Kind != kindProducer || p.Attributes[attributeCampaign] != campaign) {
				report("item %s: its root span links to span %q of kind %d, want the span that published it", id, p.Name, p.Kind)
			}
		}
	}
	return problems
}

// checkMessaging compares a span of the queue with the semantic conventions of messaging.
func checkMessaging(s span) []error {
	var problems []error
	for key, want := range map[string]string{"messaging.system": "nats", "messaging.operation.type": "", "messaging.destination.name": ""} {
		if got := s.Attributes[key]; got == "" || want != "" && got != want {
			problems = append(problems, fmt.Errorf("span %q has %s %q, want %q", s.Name, key, got, want))
		}
	}
	kinds := map[string]int{"send": kindProducer, "process": kindConsumer, "settle": kindClient}
	operation := s.Attributes["messaging.operation.type"]
	if want, ok := kinds[operation]; !ok || s.Kind != want {
		problems = append(problems, fmt.Errorf("span %q has the operation %q and kind %d", s.Name, operation, s.Kind))
	}
	return problems
}

// describeSpans names the first spans of a list.
func describeSpans(spans []span) string {
	var names []string
	for _, s := range spans[:min(len(spans), 5)] {
		names = append(names, fmt.Sprintf("%s (%s of trace %s, worker %q)", s.Name, s.ID, s.Trace, s.Attributes[attributeWorker]))
	}
	return strings.Join(names, ", ")
}

// TestSpanChecks: the checks of spans find an orphan, a link without a target, and missing attributes.
func TestSpanChecks(t *testing.T) {
	t.Parallel()
	identity := func(more attribute) attribute {
		a := attribute{}
		for _, k := range spanIdentity {
			a[k] = "x"
		}
		a[attributeCampaign], a[attributeItem], a[attributeWorker] = "c", "i", "w"
		maps.Copy(a, more)
		return a
	}
	sound := func() []span {
		spans := []span{
			{Trace: "p", ID: "p1", Name: "publish", Kind: kindProducer, Attributes: attribute{attributeCampaign: "c"}},
			{Trace: "t", ID: "r", Name: "process", Kind: kindConsumer, Start: nanotime{time.Unix(1, 0)}, Attributes: identity(attribute{
				"messaging.system": "nats", "messaging.operation.name": "process", "messaging.operation.type": "process", "messaging.destination.name": "d",
			})},
		}
		spans[1].Links = append(spans[1].Links, struct {
			Trace string `json:"traceId"`
			ID    string `json:"spanId"`
		}{"p", "p1"})
		for _, stage := range spanStages {
			spans = append(spans, span{Trace: "t", ID: stage, Parent: "r", Name: stage, Attributes: identity(nil)})
		}
		return spans
	}
	results := map[string]item.Result{"i": {TraceID: "t", Worker: "w"}}
	for name, c := range map[string]struct {
		change                   func(spans []span) []span
		orphans, links, problems int
	}{
		"sound":                   {func(s []span) []span { return s }, 0, 0, 0},
		"a parent is missing":     {func(s []span) []span { s[2].Parent = "gone"; return s }, 1, 0, 0},
		"a link has no target":    {func(s []span) []span { return s[1:] }, 0, 1, 0},
		"a link is missing":       {func(s []span) []span { s[1].Links = nil; return s }, 0, 0, 1},
		"an attribute is missing": {func(s []span) []span { delete(s[3].Attributes, spanIdentity[4]); return s }, 0, 0, 1},
		"a stage is missing":      {func(s []span) []span { return s[:len(s)-1] }, 0, 0, 1},
		"another worker":          {func(s []span) []span { s[4].Attributes[attributeWorker] = "v"; return s }, 0, 0, 1},
		"another system":          {func(s []span) []span { s[1].Attributes["messaging.system"] = "kafka"; return s }, 0, 0, 1},
		"no trace":                {func(s []span) []span { return s[:1] }, 0, 0, 1},
	} {
		got := newTraces(c.change(sound()))
		problems := got.checkAttempts("c", results)
		if o, l := len(got.orphans()), len(got.brokenLinks()); o != c.orphans || l != c.links || len(problems) != c.problems {
			t.Errorf("%s: %d orphans, %d broken links, problems %v; want %d, %d, %d", name, o, l, problems, c.orphans, c.links, c.problems)
		}
	}
}
