package main_test

import (
	"encoding/csv"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ddiff/manifest"
)

// TestPhotonsEndToEnd restores measurements at two numbers of photons and without, and takes the results through verify, replay,
// report, and both exports of runs.
func TestPhotonsEndToEnd(t *testing.T) {
	t.Parallel()
	out := tiny(t, "--images", photograph("coffee"), "--task", "denoise", "--size", "32", "--fit", "resize", "--sigma", "0.02", "--set", "photons=30,1000")
	plain := tiny(t, "--images", photograph("coffee"), "--task", "denoise", "--size", "32", "--fit", "resize", "--sigma", "0.02")
	folders := map[float64]string{}
	for id, r := range wantItems(t, out, 2) {
		folders[r.Item.Photons] = filepath.Dir(file(out, id, manifest.FileRestored))
		if v := r.Metrics.NoiseVariance; v == nil || !(*v > 0.02*0.02) {
			t.Errorf("%g photons: noise variance %v", r.Item.Photons, v)
		}
	}
	if folders[30] == "" || folders[1000] == "" {
		t.Fatalf("folders %v", folders)
	}
	e := ddiff(t, "verify", out)
	wantCode(t, e, 0)
	for photons, folder := range folders {
		if c, _ := replay(t, 0, folder); c.verdict == "different" || c.measurement != "bit-equal" {
			t.Errorf("replay with %g photons: %+v", photons, c)
		}
	}
	// A changed number of photons is another identity.
	edit(t, filepath.Join(folders[30], "result.json"), `"photons": 30,`, `"photons": 31,`)
	if e := ddiff(t, "verify", out); e.code == 0 {
		t.Errorf("verify accepts another number of photons\n%v", e)
	}
	edit(t, filepath.Join(folders[30], "result.json"), `"photons": 31,`, `"photons": 30,`)

	e = ddiff(t, "report", out, plain, "--format", "csv")
	wantCode(t, e, 0)
	records, err := csv.NewReader(strings.NewReader(e.stdout)).ReadAll()
	must(t, err)
	column := slices.Index(records[0], "photons")
	var found []string
	for _, r := range records[1:] {
		found = append(found, r[column])
	}
	slices.Sort(found)
	if !slices.Equal(found, []string{"", "1000", "30"}) {
		t.Errorf("results.csv has the photons %q", found)
	}
	e = ddiff(t, "report", out, plain, "--where", "photons=30", "--format", "csv")
	wantCode(t, e, 0)
	if strings.Count(e.stdout, "\n") != 2 {
		t.Errorf("photons=30 selects\n%s", e.stdout)
	}
	e = ddiff(t, "compare", out, plain) // no problem in common
	if e.code == 0 {
		t.Errorf("results with photons are compared with results without\n%v", e)
	}
}

// TestPhotonsOfLists: the column photons of a list replaces --photons, an unusable value fails its row, and sigma auto beside photons as well.
func TestPhotonsOfLists(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	list := filepath.Join(dir, "list.csv")
	write(t, filepath.Join(dir, "y.png"), noisyPicture(t, 0.05))
	copyFile(t, photograph("coffee"), filepath.Join(dir, "p.png"))
	write(t, list, []byte("image,measurement,task,photons,sigma,name\np.png,,denoise,50,,own\np.png,,denoise,,,flag\n"+
		",y.png,denoise,9,auto,auto\np.png,,phase_retrieval,9,,phase\np.png,,denoise,-3,,negative\n"))
	e := restore(t, "--images", list, "--task", "denoise,phase_retrieval", "--fit", "resize", "--steps", "2", "--out", out)
	wantCode(t, e, 3)
	wantLine(t, e, "done=2 failed=3 dead=0")
	found := map[string]float64{}
	for _, r := range wantItems(t, out, 2) {
		found[r.Item.Name] = r.Item.Photons
	}
	if len(found) != 2 || found["own"] != 50 || found["flag"] != 0 {
		t.Errorf("photons %v", found)
	}
	for _, want := range []string{
		"failed: auto (denoise): task denoise, method ddiff: has photons and sigma auto",
		"the measurement of task phase_retrieval is no picture", "list.csv:6: photons: -3 is out of range",
	} {
		wantMessage(t, e, want)
	}
}
