package main_test

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/passport"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
)

// TestPhotonsEndToEnd restores measurements at two numbers of photons and without, and takes the results through verify, replay,
// report, and both exports of runs.
func TestPhotonsEndToEnd(t *testing.T) {
	t.Parallel()
	out := tiny(t, "--images", photograph("coffee"), "--task", "denoise", "--size", "32", "--fit", "resize", "--sigma", "0.02", "--set", "photons=30,1000")
	plain := tiny(t, "--images", photograph("coffee"), "--task", "denoise", "--size", "32", "--fit", "resize", "--sigma", "0.02")
	folders := map[float64]string{}
	for id, r := range wantItems(t, out, 2) {
		folders[r.Item.Photons] = filepath.Dir(file(out, id, item.FileRestored))
		if v := r.Metrics["noise_variance"]; !(v > 0.02*0.02) {
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
		"failed: auto (denoise): list.csv:4: task denoise, method ddiff: has photons and sigma auto",
		"the measurement of task phase_retrieval is no picture", "list.csv:6: photons: -3 is out of range",
	} {
		wantMessage(t, e, want)
	}
}

// noisyPicture is a smooth picture of 64×64 pixels with noise.
func noisyPicture(t *testing.T, sigma float64) []byte {
	t.Helper()
	img := raster.New(3, 64, 64)
	noise.Normal(img.Pix, noise.NewKey([32]byte{3}), noise.Measurement, 0, sigma)
	for i := range img.Pix {
		img.Pix[i] += 0.5 * float32(math.Sin(float64(i%64)/9))
	}
	data, err := raster.EncodePNG(img)
	must(t, err)
	return data
}

// TestRestoreSigmaAuto: ddiff restore estimates the noise level of each picture, and states it in the terminal, the object, the result,
// results.csv and the passport, which replays with the number.
func TestRestoreSigmaAuto(t *testing.T) {
	skipLong(t)
	t.Parallel()
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	write(t, filepath.Join(dir, "a.png"), noisyPicture(t, 0.04))
	write(t, filepath.Join(dir, "b.png"), noisyPicture(t, 0.15))
	base := []string{"restore", dir, "--task", "denoise", "--sigma", "auto", "--steps", "3", "--threads", "1"}
	e := ddiff(t, append(base, "--results", out)...)
	wantCode(t, e, 0)
	wantLine(t, e, "done=2 failed=0 dead=0 skipped=0 warned=0")
	found := map[string]float64{}
	for _, r := range wantItems(t, out, 2) {
		name := filepath.Base(r.Item.Name)
		found[name] = r.Item.Sigma
		text := item.Sigma(r.Item.Sigma).String()
		if !r.Item.SigmaEstimated {
			t.Errorf("%s has no mark", name)
		}
		wantMessage(t, e, name+": estimated sigma "+text)
		target := filepath.Join(dir, strings.TrimSuffix(name, ".png")+".restored.png")
		p, err := passport.Read(read(t, target))
		if err != nil || p.Item.Sigma != r.Item.Sigma || !p.Item.SigmaEstimated {
			t.Errorf("the passport of %s has sigma %v, %v", name, p.Item.Sigma, err)
		}
		wantLine(t, ddiff(t, "replay", target, "--threads", "1"), "replay=bit-equal")
		if !strings.Contains(string(read(t, filepath.Join(out, "results.csv"))), ","+text+",") {
			t.Errorf("results.csv lacks %s", text)
		}
	}
	for name, want := range map[string]float64{"a.png": 0.04, "b.png": 0.15} {
		if math.Abs(found[name]/want-1) > 0.08 {
			t.Errorf("%s has sigma %g, want about %g", name, found[name], want)
		}
	}
	csv := strings.Split(string(read(t, filepath.Join(out, "results.csv"))), "\n")
	if !strings.HasSuffix(csv[0], ",warnings,sigma_estimated") || !strings.HasSuffix(csv[1], ",true") {
		t.Errorf("results.csv has %q", csv[:2])
	}
	if text := string(read(t, filepath.Join(out, "summary.md"))); !strings.Contains(text, "σ auto") {
		t.Errorf("the summary does not name the noise level: %s", text)
	}

	// The estimate is the number that ddiff run finds, and has the identity of this number.
	e = ddiff(t, "restore", filepath.Join(dir, "a.png"), "--task", "denoise", "--sigma", item.Sigma(found["a.png"]).String(), "--steps", "3", "--threads", "1", "--force", "--json")
	wantCode(t, e, 0)
	var given, estimated struct {
		ID    string
		Sigma *float64 `json:"estimated_sigma"`
	}
	must(t, json.NewDecoder(strings.NewReader(e.stdout)).Decode(&given))
	e = ddiff(t, append(base, "--force", "--json")...)
	wantCode(t, e, 0)
	for line := range strings.Lines(e.stdout) {
		if strings.Contains(line, "a.restored.png") {
			must(t, json.Unmarshal([]byte(line), &estimated))
		}
	}
	if given.ID != estimated.ID || given.Sigma != nil || estimated.Sigma == nil || *estimated.Sigma != found["a.png"] {
		t.Errorf("given %+v, estimated %+v", given, estimated)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--task", "phase_retrieval"}, "auto does not suit task phase_retrieval: its measurement is no picture; give a number"},
		{[]string{"--task", "jpeg"}, "auto does not suit task jpeg: the noise of its measurement is not white; give a number"},
	} {
		e := ddiff(t, append([]string{"restore", dir, "--sigma", "auto"}, c.args...)...)
		wantCode(t, e, 2)
		wantMessage(t, e, c.want)
	}
}
