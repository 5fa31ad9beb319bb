package coordinator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/restore/prior"
)

// A lost choice comes from the first window with an item that depends on it. Without one, it stays open, or is float32 if the whole dataset is read.
func TestRestorePrecision(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tasks    string // of the items, one window each
		complete bool
		want     manifest.Precision
	}{
		"the first window":                         {"hdr phase_retrieval", false, manifest.PrecisionBFloat16},
		"a later window":                           {"phase_retrieval phase_retrieval hdr", false, manifest.PrecisionBFloat16},
		"no window yet":                            {"phase_retrieval", false, ""},
		"no window of a dataset that is read":      {"phase_retrieval phase_retrieval", true, manifest.PrecisionFloat32},
		"a later window of a dataset that is read": {"phase_retrieval hdr", true, manifest.PrecisionBFloat16},
	} {
		now := time.Unix(1e9, 0)
		r := decidingRunner(t, &now, &strings.Builder{})
		r.rec.Spec.Precision, r.rec.Spec.Float32 = manifest.PrecisionAuto, []string{"phase_retrieval"}
		r.id = r.rec.Spec.ID()
		r.onBoard(t).models.prior = &prior.Description{Card: prior.Card{MultipleOf: 8}}
		for i, task := range strings.Fields(c.tasks) {
			it := manifest.Item{ID: fmt.Sprint(i), Task: task, Precision: r.rec.Spec.PrecisionOf(task, manifest.PrecisionBFloat16)}
			w := shard.Window{Header: shard.Header{Schema: manifest.RecordSchema, Campaign: r.id, Number: i, Items: 1}, Items: []manifest.Item{it}}
			data, err := w.Encode()
			must(t, err)
			must(t, r.s.cfg.Store.Put(t.Context(), shard.Key(r.id, i), data))
			r.windows.sound, r.windows.stored = 0, i+1
		}
		r.windows.complete = c.complete
		if err := r.restorePrecision(t.Context()); err != nil || r.rec.Precision != c.want {
			t.Errorf("%s: %q (%v), want %q", name, r.rec.Precision, err, c.want)
		}
	}
}
