package aggregate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ddiff/internal/report/entry"
	"ddiff/internal/report/result"
	"ddiff/internal/report/sweep"
	"ddiff/internal/tune"
	"ddiff/restore/method"
)

// Tunings say on which images settings were chosen: by the records of ddiff tune, and by presets. Create it with
// [ReadTunings].
type Tunings struct {
	methods method.Set
	tuned   map[tunedSettings]*tunedImages
}

// tunedSettings identify settings that were chosen for a task, whatever its parameters, noise level and size.
type tunedSettings struct{ task, method, settings string }

// tunedImages are the images with which settings were chosen, and the parameters that were compared.
type tunedImages struct {
	images   map[uint64]bool
	compared []string
}

// ReadTunings reads the tuning records of outputs; methods know the images of their presets. The error wraps
// [tune.ErrRecord] if a record cannot be decoded.
func ReadTunings(ctx context.Context, outputs []result.Output, methods method.Set) (*Tunings, error) {
	t := &Tunings{methods: methods, tuned: make(map[tunedSettings]*tunedImages)}
	for _, o := range outputs {
		for info, err := range o.Store.List(ctx, tune.Folder) {
			if err == nil && !isRecord(info.Key) {
				continue
			}
			var data []byte
			if err == nil {
				data, err = o.Store.Get(ctx, info.Key)
			}
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", o.Address, err)
			}
			record, err := tune.DecodeRecord(data)
			if err != nil {
				return nil, fmt.Errorf("read %s: %s: %w; move the file away and run ddiff tune again", o.Address, info.Key, err)
			}
			if err := t.add(record); err != nil {
				return nil, fmt.Errorf("read %s: %s: %w", o.Address, info.Key, err)
			}
		}
	}
	return t, nil
}

// isRecord reports whether a key is that of a tuning record, tuning/ID.json, and not of an output inside tuning/, such as summary.json.
func isRecord(key string) bool {
	id, ok := strings.CutSuffix(strings.TrimPrefix(key, tune.Folder), ".json")
	return ok && id != "" && strings.Trim(id, "0123456789abcdef") == ""
}

func (t *Tunings) add(r tune.Record) error {
	of := func(task, method, settings string) *tunedImages {
		key := tunedSettings{task, method, settings}
		if t.tuned[key] == nil {
			t.tuned[key] = &tunedImages{images: make(map[uint64]bool)}
		}
		return t.tuned[key]
	}
	r.TunedOn(func(task, method, settings, sha256 string) {
		of(task, method, settings).images[entry.ImageKey(sha256)] = true
	})
	for _, fold := range r.Folds {
		for _, race := range fold.Races {
			compared, err := comparedParameters(race.Cells)
			if err != nil {
				return err
			}
			one := of(race.Task, race.Method, race.Chosen)
			one.compared = append(one.compared, compared...)
		}
	}
	return nil
}

// comparedParameters are the parameters in which settings of a race differ.
func comparedParameters(cells []tune.RecordedCell) ([]string, error) {
	values := map[string]string{}
	var out []string
	for _, c := range cells {
		settings, err := sweep.Settings(c.Solver)
		if err != nil {
			return nil, fmt.Errorf("%w: settings %s: %w", tune.ErrRecord, c.Key, err)
		}
		for _, s := range settings {
			if first, known := values[s.Name]; !known {
				values[s.Name] = s.Value
			} else if first != s.Value && !slices.Contains(out, s.Name) {
				out = append(out, s.Name)
			}
		}
	}
	return out, nil
}

// TunedImages counts the images of a row with which its settings were chosen, by ddiff tune and by a preset.
type TunedImages struct {
	chosen [2]map[uint64]bool
	ofRow  [2]map[uint64]bool
}

// Of returns the choice of an entry's settings, nil if nothing is known about it.
func (t *Tunings) Of(e *entry.Entry) *TunedImages {
	if t == nil {
		return nil
	}
	c := &TunedImages{ofRow: [2]map[uint64]bool{{}, {}}}
	var compared []string
	settings := sweep.OfSolver(e.Settings)
	if one := t.tuned[tunedSettings{e.Task, e.Method, settings}]; one != nil {
		c.chosen[0], compared = one.images, one.compared
	}
	c.chosen[1] = make(map[uint64]bool)
	for _, sha256 := range t.methods.ChosenOn(e.Preset, e.Method, e.Task, settings, compared) {
		c.chosen[1][entry.ImageKey(sha256)] = true
	}
	return c
}

// count adds an image of the row.
func (c *TunedImages) count(image uint64) {
	if c == nil {
		return
	}
	for k, chosen := range c.chosen {
		if chosen[image] {
			c.ofRow[k][image] = true
		}
	}
}

// Has reports whether settings were chosen with the image.
func (c *TunedImages) Has(image uint64) bool {
	return c != nil && (c.chosen[0][image] || c.chosen[1][image])
}

func (c *TunedImages) images() (tuned, preset int) {
	if c == nil {
		return 0, 0
	}
	return len(c.ofRow[0]), len(c.ofRow[1])
}
