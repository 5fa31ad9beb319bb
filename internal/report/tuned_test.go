package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/result"
	"ddiff/internal/report/table"
	"ddiff/internal/tune"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/parameter"
	"ddiff/storage"
)

// tunedResult is a result of an image with settings.
func tunedResult(t *testing.T, image string, gamma0 float64) item.Result {
	t.Helper()
	r := reporttest.Result(t, "hdr", "ddiff", image, 0, reporttest.Scored(25, 20, 0.8, 0.001))
	r.Item.Image = &item.Source{Path: image, SHA256: image}
	r.Item.Solver = fmt.Appendf(nil, `{"method":"ddiff","steps":9,"gamma0":%g,"b":1}`, gamma0)
	r.Item.Preset = "natural"
	reporttest.Must(t, r.Item.Identify())
	return r
}

// chosenOn is a method whose preset natural has the value gamma0=8, chosen with the images d and e.
type chosenOn struct{ method.Method }

func (c chosenOn) Info() method.Info {
	i := c.Method.Info()
	i.Rows = []method.Row{{
		Preset: "natural", Task: "hdr", Values: map[string]parameter.Value{"gamma0": parameter.Number(8)}, ChosenOn: []string{"d", "e"},
	}}
	return i
}

func race(chosen float64, cells ...float64) tune.RecordRace {
	text := func(g float64) string { return fmt.Sprintf("steps=9;gamma0=%g;b=1", g) }
	r := tune.RecordRace{Task: "hdr", Method: "ddiff", Sigma: 0.05, Chosen: text(chosen)}
	for _, g := range cells {
		r.Cells = append(r.Cells, tune.RecordedCell{
			Standing: tune.Standing{Key: text(g)}, Solver: fmt.Appendf(nil, `{"method":"ddiff","steps":9,"gamma0":%g,"b":1}`, g),
		})
	}
	return r
}

// foldOf is a fold with a race; each letter is an image.
func foldOf(tuned, tested string, r tune.RecordRace) tune.RecordFold {
	images := func(letters string) (out []tune.Image) {
		for _, l := range letters {
			out = append(out, tune.Image{Name: string(l), SHA256: string(l)})
		}
		return out
	}
	return tune.RecordFold{Fold: tune.Fold{Tune: images(tuned), Test: images(tested)}, Races: []tune.RecordRace{r}}
}

// TestTablesSayWhatWasTunedOnTheirImages writes tables of results with settings that were chosen on some of their images, by a
// tuning, by two folds, and by a preset.
func TestTablesSayWhatWasTunedOnTheirImages(t *testing.T) {
	t.Parallel()
	ddiff := method.Builtin()[0]
	methods := method.Set{{Name: ddiff.Name, Method: chosenOn{ddiff}}}
	const preset = "Values of a preset were chosen with images of the same row"
	for name, tt := range map[string]struct {
		folds         []tune.RecordFold
		images        string
		gamma0        float64
		tuned, preset int
	}{
		"nothing":                 {nil, "abc", 4, 0, 0},
		"preset":                  {nil, "abde", 8, 0, 2},
		"preset on other images":  {nil, "abc", 8, 0, 0},
		"tuned on other images":   {[]tune.RecordFold{foldOf("ab", "c", race(4, 4, 5))}, "c", 4, 0, 0},
		"tuned on two of them":    {[]tune.RecordFold{foldOf("ab", "c", race(4, 4, 5))}, "abc", 4, 2, 0},
		"other settings":          {[]tune.RecordFold{foldOf("ab", "c", race(5, 4, 5))}, "abc", 4, 0, 0},
		"one setting":             {[]tune.RecordFold{foldOf("ab", "c", race(4, 4))}, "abc", 4, 0, 0},
		"compared preset's value": {[]tune.RecordFold{foldOf("ab", "d", race(8, 4, 8))}, "de", 8, 0, 0},
		"both folds chose it": {[]tune.RecordFold{
			foldOf("ab", "c", race(4, 4, 5)),
			foldOf("c", "ab", race(4, 4, 5)),
		}, "abc", 4, 0, 0},
		"one fold chose it": {[]tune.RecordFold{
			foldOf("ab", "c", race(4, 4, 5)),
			foldOf("c", "ab", race(5, 4, 5)),
		}, "abc", 4, 2, 0},
	} {
		store, err := storage.NewDir(t.TempDir())
		reporttest.Must(t, err)
		if tt.folds != nil {
			key, data, err := tune.Record{Folds: tt.folds}.Encode()
			reporttest.Must(t, err)
			reporttest.Must(t, store.Put(t.Context(), key, data))
		}
		tunings, err := aggregate.ReadTunings(t.Context(), []result.Output{{Address: "out", Store: store}}, methods)
		reporttest.Must(t, err)
		var results []item.Result
		for _, image := range tt.images {
			results = append(results, tunedResult(t, string(image), tt.gamma0))
			results[len(results)-1].Item.Tile = len(tt.images) % 2 * 32 // tiles are no part of the settings that were chosen
		}
		s, err := aggregate.Summarize(reporttest.Stream(results), nil, "", tunings)
		reporttest.Must(t, err)
		if r := s.Rows[0]; len(s.Rows) != 1 || r.TunedImages != tt.tuned || r.PresetImages != tt.preset {
			t.Errorf("%s: %d tuned images and %d of the preset in %d rows, want %d and %d", name, r.TunedImages, r.PresetImages, len(s.Rows), tt.tuned, tt.preset)
		}
		notes := strings.Join(table.Texts(table.Of(s, "-").Notes), " ")
		want := fmt.Sprintf("with images of the same row, so that its figures are too good: %d of %d images", tt.tuned+tt.preset, len(tt.images))
		if got := strings.Contains(notes, want); got != (tt.tuned+tt.preset > 0) {
			t.Errorf("%s: note %v:\n%s", name, got, notes)
		}
		if got := strings.Contains(notes, preset); got != (tt.preset > 0) {
			t.Errorf("%s: note on the preset %v", name, got)
		}
		if tt.preset == 0 {
			continue
		}
		memory := reporttest.NewMemory()
		_, err = Write(t.Context(), memory, Campaign{Name: "c", Tunings: tunings}, reporttest.Stream(results))
		reporttest.Must(t, err)
		reporttest.Contains(t, string(memory.Files[KeyPage]), "with images of the same row")
		var again aggregate.Summary
		reporttest.Must(t, json.Unmarshal(memory.Files[KeySummaryJSON], &again))
		if again.Rows[0].PresetImages != tt.preset {
			t.Errorf("%s: summary.json lacks the numbers of images", name)
		}
	}
}

// TestTuningRecordsAreChecked reads a record that is no record.
func TestTuningRecordsAreChecked(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"no record", `{"schema":99}`, `{}`} {
		store, err := storage.NewDir(t.TempDir())
		reporttest.Must(t, err)
		reporttest.Must(t, store.Put(t.Context(), tune.Folder+"0a.json", []byte(data)))
		_, err = aggregate.ReadTunings(t.Context(), []result.Output{{Address: "out", Store: store}}, nil)
		if !errors.Is(err, tune.ErrRecord) || !strings.Contains(err.Error(), "read out: tuning/0a.json") {
			t.Errorf("%q: error %v", data, err)
		}
	}
}

// TestTablesStateWhatTheirRowsShare: a table for print names noise level, size, prior, preset and steps, which are no columns, and units.
func TestTablesStateWhatTheirRowsShare(t *testing.T) {
	t.Parallel()
	s, err := aggregate.Summarize(reporttest.Stream([]item.Result{tunedResult(t, "d", 8), tunedResult(t, "d", 4)}), nil, "", nil)
	reporttest.Must(t, err)
	for _, format := range []table.Format{table.FormatText, table.FormatMarkdown, table.FormatLaTeX} {
		var out bytes.Buffer
		reporttest.Must(t, table.Write(&out, s, format))
		reporttest.Contains(t, out.String(), "All rows: σ ", "preset natural", "steps=9", "in dB")
	}
}
