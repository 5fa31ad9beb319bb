package report

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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
func ReadTunings(ctx context.Context, outputs []Output, methods method.Set) (*Tunings, error) {
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
		of(task, method, settings).images[imageKey(sha256)] = struct{}{}
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

// choice counts the images of a row with which its settings were chosen.
type choice struct {
	byTune, byPreset map[uint64]struct{}
	tuned, preset    map[uint64]struct{} // those of the row
}

// of returns the choice of an entry's settings, nil if nothing is known about it.
func (t *Tunings) of(e *entry) *choice {
	if t == nil {
		return nil
	}
	c := &choice{tuned: make(map[uint64]struct{}), preset: make(map[uint64]struct{}), byPreset: make(map[uint64]struct{})}
	var compared []string
	if one := t.tuned[tunedSettings{e.Task, e.Method, e.Settings}]; one != nil {
		c.byTune, compared = one.images, one.compared
	}
	for _, sha256 := range t.methods.ChosenOn(e.Preset, e.Method, e.Task, e.Settings, compared) {
		c.byPreset[imageKey(sha256)] = struct{}{}
	}
	return c
}

func (c *choice) count(image uint64) {
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

// has reports whether settings were chosen with the image.
func (c *choice) has(image uint64) bool {
	if c == nil {
		return false
	}
	_, tuned := c.byTune[image]
	_, preset := c.byPreset[image]
	return tuned || preset
}

func (c *choice) images() (tuned, preset int) {
	if c == nil {
		return 0, 0
	}
	return len(c.tuned), len(c.preset)
}

// maxTunedRows bounds the rows that a note names.
const maxTunedRows = 5

// tuningNotes name the rows whose settings were chosen with their own images.
func tuningNotes(rows []Row, varying Varying) []string {
	var out []string
	for _, kind := range []struct {
		images func(r *Row) int
		text   string
	}{
		{func(r *Row) int { return r.TunedImages }, "ddiff tune chose settings with images of the same row"},
		{func(r *Row) int { return r.PresetImages }, "Values of a preset were chosen with images of the same row"},
	} {
		var named []string
		more := 0
		for i := range rows {
			r := &rows[i]
			switch n := kind.images(r); {
			case n == 0:
			case len(named) == maxTunedRows:
				more++
			default:
				named = append(named, fmt.Sprintf("%d of %d images of %s", n, r.Images, varying.rowName(r)))
			}
		}
		if len(named) == 0 {
			continue
		}
		text := kind.text + ", so that its figures are too good: " + strings.Join(named, "; ")
		if more > 0 {
			text += fmt.Sprintf("; and of %d more rows", more)
		}
		out = append(out, text+".")
	}
	return out
}

// rowName names a row in a note by all that tells it from the others.
func (v Varying) rowName(r *Row) string {
	name := r.Task
	if problem := v.problemText(r); problem != "" {
		name += ", " + problem + ","
	}
	name += " " + v.approachText(r)
	if v.Preset {
		name += ", preset " + r.Preset
	}
	return name
}
