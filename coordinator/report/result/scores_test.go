package result

import (
	"strings"
	"testing"

	"ddiff/coordinator/report/reporttest"
	"ddiff/manifest"
)

// TestScoreTable reads parts of two metrics and returns the scores of a result's pictures.
func TestScoreTable(t *testing.T) {
	t.Parallel()
	done := reporttest.Result(t, "hdr", "ddiff", "a", 0)
	done.Item.ID = strings.Repeat("5a", 32)
	done.Artifacts = map[string]string{manifest.FileTruth: "12", manifest.FileRestored: "34"}
	pictures := manifest.ScoredPictures(&done)
	other := strings.Repeat("00", 16)
	table := &scoreTable{index: map[string]uint16{}, values: map[scoreKey]float64{}, skipped: map[scoreKey]struct{}{}}
	for _, part := range []string{
		`{"metric":"lpips_vgg@1:aaaaaaaa"}` + "\n" + `{"item":"` + done.Item.ID + `","pictures":"` + other + `","value":0.9}`,
		`{"metric":"lpips_vgg@1:aaaaaaaa"}` + "\n" + `{"item":"` + done.Item.ID + `","pictures":"` + pictures + `","value":0.25}`,
		`{"metric":"niqe@1"}` + "\n" + `{"item":"` + done.Item.ID + `","pictures":"` + pictures + `","reason":"too small"}`,
		`{"metric":"nima@1"}` + "\n" + `{"item":"` + strings.Repeat("00", 32) + `","pictures":"` + pictures + `","value":3}`,
	} {
		reporttest.Must(t, table.add([]byte(part)))
	}
	got := table.of(&done)
	if len(got) != 2 || got[0].Metric != "lpips_vgg@1:aaaaaaaa" || got[0].Value == nil || *got[0].Value != 0.25 ||
		got[1].Metric != "niqe@1" || got[1].Value != nil || got[0].Item != done.Item.ID {
		t.Errorf("scores %+v", got)
	}
	failed := done
	failed.Outcome = manifest.OutcomeFailed
	unpictured := done
	unpictured.Artifacts = nil
	for name, r := range map[string]manifest.Result{"failed": failed, "without pictures": unpictured} {
		if got := table.of(&r); len(got) > 0 {
			t.Errorf("%s: scores %+v", name, got)
		}
	}
}

// TestScoreTableRefuses names the line of a part that cannot be read.
func TestScoreTableRefuses(t *testing.T) {
	t.Parallel()
	good := `{"item":"` + strings.Repeat("5a", 32) + `","pictures":"` + strings.Repeat("00", 16) + `","value":1}`
	for part, want := range map[string]string{
		"no json":             "decode line 1: ",
		`{"metric":"psnr"}`:   `decode line 1: metric "psnr" is no id such as psnr@1`,
		`{"metric":"../x@1"}`: "decode line 1: metric",
		`{"metric":"psnr@1"}` + "\n" + good + "\nno json":                               "decode line 3: ",
		`{"metric":"psnr@1"}` + "\n" + strings.Replace(good, "5a5a", "", 1)[:40] + `"}`: "decode line 2: item or pictures are no digest",
		`{"metric":"psnr@1"}` + "\n" + strings.Replace(good, "0000", "zz00", 1):         "decode line 2: item or pictures are no digest",
		`{"metric":"psnr@1"}` + "\n" + strings.Replace(good, "0000", "", 1):             "decode line 2: item or pictures are no digest",
		`{"metric":"psnr@1"}` + "\n" + good + "\n" + strings.Repeat("x", 1<<20+1):       "too long",
	} {
		table := &scoreTable{index: map[string]uint16{}, values: map[scoreKey]float64{}, skipped: map[scoreKey]struct{}{}}
		if err := table.add([]byte(part)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: error %v, want %q", part, err, want)
		}
	}
}
