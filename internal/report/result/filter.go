package result

import (
	"cmp"
	"fmt"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"

	"ddiff/internal/report/sweep"
	"ddiff/restore/item"
)

// Filter selects results by their properties. The zero value selects all.
type Filter struct {
	conditions []*condition
}

// condition is one property and its allowed values.
type condition struct {
	name   string
	values []string
	known  bool // some result has the property
}

// ParseFilter reads conditions NAME=VALUE[,VALUE...], which all must hold. NAME is a column of results.csv that is not a
// figure, a parameter of an operator, or a setting of a method. Numbers are compared as numbers; sigma also matches auto if it was
// estimated, a prior the beginning of its digest, an image a pattern with * and ?. The error wraps [ErrFilter].
func ParseFilter(conditions []string) (*Filter, error) {
	f := &Filter{}
	for _, text := range conditions {
		name, list, ok := strings.Cut(text, "=")
		if name = strings.TrimSpace(name); !ok || name == "" || list == "" {
			return nil, fmt.Errorf("%w %q: want NAME=VALUE, as in task=hdr", ErrFilter, text)
		}
		c := &condition{name: name, values: strings.Split(list, ",")}
		for i, v := range c.values {
			c.values[i] = strings.TrimSpace(v)
			if _, err := path.Match(c.values[i], ""); name == "image" && err != nil {
				return nil, fmt.Errorf("%w %q: %w", ErrFilter, text, err)
			}
		}
		f.conditions = append(f.conditions, c)
	}
	return f, nil
}

// Select yields the results that match. Its last pair has an error that wraps [ErrFilter] if no result has one of the
// properties.
func (f *Filter) Select(results iter.Seq2[item.Result, error]) iter.Seq2[item.Result, error] {
	return func(yield func(item.Result, error) bool) {
		read := false
		for r, err := range results {
			if err == nil {
				read = true
				matches, bad := f.match(&r)
				if err = bad; err == nil && !matches {
					continue
				}
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
		for _, c := range f.conditions {
			if read && !c.known {
				yield(item.Result{}, fmt.Errorf("%w %s: no result has this property", ErrFilter, c.name))
				return
			}
		}
	}
}

func (f *Filter) match(r *item.Result) (bool, error) {
	all := true
	for _, c := range f.conditions {
		value, known, err := property(r, c.name)
		if err != nil {
			return false, err
		}
		c.known = c.known || known
		all = all && known && slices.ContainsFunc(c.values, func(want string) bool {
			return c.equal(value, want) || c.name == "sigma" && r.Item.SigmaEstimated && want == item.SigmaAuto.String()
		})
	}
	return all, nil
}

func (c *condition) equal(value, want string) bool {
	switch c.name {
	case "prior", "item":
		return strings.HasPrefix(value, want)
	case "image":
		ok, err := path.Match(want, value)
		return ok && err == nil
	}
	a, errA := strconv.ParseFloat(value, 64)
	b, errB := strconv.ParseFloat(want, 64)
	if errA == nil && errB == nil {
		return a == b
	}
	return value == want
}

// property returns a property of a result as text.
func property(r *item.Result, name string) (value string, known bool, err error) {
	it := &r.Item
	values := map[string]string{
		"item": it.ID, "image": it.Name, "task": it.Task, "method": it.Method, "preset": it.Preset, "prior": it.Prior, "campaign": it.Campaign,
		"outcome": string(r.Outcome), "sigma": sweep.Exact(it.Sigma), "seed": strconv.FormatUint(it.Seed, 10), "run": strconv.Itoa(it.Run),
		"size": sweep.Pixels(it.Width, it.Height), "fit": string(it.Fit),
	}
	if it.SigmaEstimated {
		values["sigma_estimated"] = "true"
	}
	if it.Photons > 0 {
		values["photons"] = sweep.Exact(it.Photons)
	}
	if used := cmp.Or(string(r.Runtime.Precision), string(it.Precision)); used != "" {
		values["precision"] = used
	}
	if value, known = values[name]; known {
		return value, true, nil
	}
	for _, a := range sweep.Assignments(sweep.Join(sweep.Params(it), sweep.Files(it))) {
		if value, known = strings.CutPrefix(a, name+"="); known {
			return value, true, nil
		}
	}
	settings, err := sweep.Settings(it.Solver)
	if err != nil {
		return "", false, fmt.Errorf("read item %q: %w", it.Name, err)
	}
	settings = append(settings, sweep.Setting{Name: "tile", Value: strconv.Itoa(it.Tile)}, sweep.Setting{Name: "overlap", Value: strconv.Itoa(it.Overlap)},
		sweep.Setting{Name: "keep_observed", Value: strconv.FormatBool(it.KeepObserved)})
	for _, s := range settings {
		if s.Name == name {
			return s.Value, true, nil
		}
	}
	return "", false, nil
}
