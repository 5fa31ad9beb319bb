package aggregate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ddiff/coordinator/report/entry"
	"ddiff/coordinator/report/result"
	"ddiff/coordinator/tune"
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
	images   map[uint64]struct{}
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
				return nil, fmt.Errorf("read %s: %s: %w; remove the file and run ddiff tune again", o.Address, info.Key, err)
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
			t.tuned[key] = &tunedImages{images: make(map[uint64]struct{})}
		}
		return t.tuned[key]
	}
	r.TunedOn(func(task, method, settings, sha256 string) {
		of(task, method, settings).images[entry.ImageKey(sha256)] = struct{}{}
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
		var solver map[string]json.RawMessage
		if err := json.Unmarshal(c.Solver, &solver); err != nil {
			return nil, fmt.Errorf("%w: settings %s: %w", tune.ErrRecord, c.Key, err)
		}
		for name, v := range solver {
			if first, known := values[name]; !known {
				values[name] = string(v)
			} else if first != string(v) && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out, nil
}

// TunedImages counts the images of a row with which its settings were chosen.
type TunedImages struct {
	byTune, byPreset map[uint64]struct{}
	tuned, preset    map[uint64]struct{} // those of the row
}

// Of returns the choice of an entry's settings, nil if nothing is known about it.
func (t *Tunings) Of(e *entry.Entry) *TunedImages {
	if t == nil {
		return nil
	}
	c := &TunedImages{tuned: make(map[uint64]struct{}), preset: make(map[uint64]struct{}), byPreset: make(map[uint64]struct{})}
	var compared []string
	if one := t.tuned[tunedSettings{e.Task, e.Method, e.Settings}]; one != nil {
		c.byTune, compared = one.images, one.compared
	}
	for _, sha256 := range t.methods.ChosenOn(e.Preset, e.Method, e.Task, e.Settings, compared) {
		c.byPreset[entry.ImageKey(sha256)] = struct{}{}
	}
	return c
}

func (c *TunedImages) count(image uint64) {
	if c == nil {
		return
	}
	if _, ok := c.byTune[image]; ok {
		c.tuned[image] = struct{}{}
	}
	if _, ok := c.byPreset[image]; ok {
		c.preset[image] = struct{}{}
	}
}

// Has reports whether settings were chosen with the image.
func (c *TunedImages) Has(image uint64) bool {
	if c == nil {
		return false
	}
	_, tuned := c.byTune[image]
	_, preset := c.byPreset[image]
	return tuned || preset
}

func (c *TunedImages) images() (tuned, preset int) {
	if c == nil {
		return 0, 0
	}
	return len(c.tuned), len(c.preset)
}
