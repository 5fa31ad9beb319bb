package board

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/internal/fuzztest"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/manifest"
)

// FuzzRecords: any bytes as the record of a campaign, of its status or of a worker are read or skipped with a reason of one line. A
// campaign is stored as it was read.
func FuzzRecords(f *testing.F) {
	spec := manifest.Default()
	spec.Name = "c"
	c := record.Campaign{
		Schema: 1, ID: "c", Output: "c", Weight: 1, Priority: record.PriorityNormal, Spec: *spec, Wanted: record.WantRun, Phase: record.PhaseRunning,
		Submitted: time.Unix(1, 0).UTC(), Last: &record.Status{ID: "c"},
	}
	for _, v := range []any{c, record.Status{ID: "c", Phase: record.PhaseRunning}, record.Beat{Name: "w"}, owner{ID: "x"}, record.Cluster{ID: "x"}} {
		data, err := json.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzztest.Limit(t, 1<<20+1024*len(data), func() {
			read := map[string]queue.Change{"x.c": {Key: "x.c", Data: data, Since: time.Now()}}
			_, skipped := Beats(read)
			campaigns := map[string]queue.Change{record.KeyCampaignPrefix + "c": {Data: data}}
			all, more := Join(campaigns, map[string]queue.Change{record.KeyStatusPrefix + "c": {Data: data}})
			for _, err := range slices.Concat(skipped, more) {
				if strings.ContainsAny(err.Error(), "\r\n\x1b") {
					t.Errorf("a reason with control characters: %q", err)
				}
			}
			for _, s := range all {
				if s.Campaign.ID != "c" || s.Status.ID != "c" {
					t.Errorf("campaign %+v, status %+v", s.Campaign, s.Status)
				}
				Active(s.Campaign)
			}
		})
		c, err := record.DecodeCampaign("c", data)
		if err != nil {
			return
		}
		stored, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := record.DecodeCampaign("c", stored)
		if err != nil {
			t.Fatalf("%s is stored as %s: %v", data, stored, err)
		}
		if twice, err := json.Marshal(again); err != nil || string(twice) != string(stored) {
			t.Errorf("%s is read as %s, %v", stored, twice, err)
		}
	})
}
