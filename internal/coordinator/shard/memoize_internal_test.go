package shard

import (
	"encoding/json"
	"testing"

	"ddiff/internal/restore/prior"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/restore/method"
)

// The noise that a method assumes is that of the item's task, also where items differ only in it.
func TestResolverFollowsSigma(t *testing.T) {
	t.Parallel()
	p, err := prior.Open(prior.Bundled)
	if err != nil {
		t.Fatal(err)
	}
	d := &prior.Description{Card: p.Card, Schedule: p.Schedule}
	resolve := memoize(manifest.Catalogue{}.Resolver(d))
	for _, sigma := range []float64{0.05, 0.2} {
		raw, _, err := resolve(item.Task{Name: "hdr", Method: "diffpir", Preset: "natural", Sigma: new(item.Sigma(sigma))}, false, 32, 32)
		if err != nil {
			t.Fatal(err)
		}
		var s method.Settings
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatal(err)
		}
		if got := s.Number("noise_std"); got != sigma {
			t.Errorf("sigma %g: noise_std %g", sigma, got)
		}
	}
}
