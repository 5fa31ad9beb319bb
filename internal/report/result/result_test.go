package result

import (
	"slices"
	"strings"
	"testing"

	"ddiff/internal/report/reporttest"
	"ddiff/restore/item"
)

// TestScoreTable reads parts of two metrics and returns the scores of a result's pictures.
func TestScoreTable(t *testing.T) {
	t.Parallel()
	done := reporttest.Result(t, "hdr", "ddiff", "a", 0)
	done.Item.ID = strings.Repeat("5a", 32)
	done.Artifacts = map[string]string{item.FileTruth: "12", item.FileRestored: "34"}
	pictures := ScoredPictures(&done)
	other := strings.Repeat("00", 16)
	store := reporttest.NewMemory()
	for _, part := range []string{
		`{"metric":"lpips_vgg@1:aaaaaaaa"}` + "\n" + `{"item":"` + done.Item.ID + `","pictures":"` + other + `","value":0.9}`,
		`{"metric":"lpips_vgg@1:aaaaaaaa"}` + "\n" + `{"item":"` + done.Item.ID + `","pictures":"` + pictures + `","value":0.25}`,
		`{"metric":"niqe@1"}` + "\n" + `{"item":"` + done.Item.ID + `","pictures":"` + pictures + `","reason":"too small"}`,
		`{"metric":"nima@1"}` + "\n" + `{"item":"` + strings.Repeat("00", 32) + `","pictures":"` + pictures + `","value":3}`,
	} {
		store.Files[ScoresFolder+"m/"+ScorePartName([]byte(part))] = []byte(part)
	}
	table, err := readScores(t.Context(), []Output{{Store: store}})
	reporttest.Must(t, err)
	got := table.of(&done)
	slices.SortFunc(got, func(a, b item.Score) int { return strings.Compare(a.Metric, b.Metric) })
	if len(got) != 2 || got[0].Metric != "lpips_vgg@1:aaaaaaaa" || got[0].Value == nil || *got[0].Value != 0.25 ||
		got[1].Metric != "niqe@1" || got[1].Value != nil || got[0].Item != done.Item.ID {
		t.Errorf("scores %+v", got)
	}
	failed := done
	failed.Outcome = item.OutcomeFailed
	unpictured := done
	unpictured.Artifacts = nil
	for name, r := range map[string]item.Result{"failed": failed, "without pictures": unpictured} {
		if got := table.of(&r); len(got) > 0 {
			t.Errorf("%s: scores %+v", name, got)
		}
	}
}

// TestScoreTableRefuses names the line of a part that cannot be read, and a part that was changed.
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
	} {
		store := reporttest.NewMemory()
		store.Files[ScoresFolder+"m/1.jsonl"] = []byte(part)
		if _, err := readScores(t.Context(), []Output{{Store: store}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: error %v, want %q", part, err, want)
		}
	}
	store, part := reporttest.NewMemory(), `{"metric":"psnr@1"}`+"\n"+good
	store.Files[ScoresFolder+"m/"+ScorePartName([]byte(part))] = []byte(strings.Replace(part, `"value":1`, `"value":9`, 1))
	if _, err := readScores(t.Context(), []Output{{Store: store}}); err == nil || !strings.Contains(err.Error(), "it was changed") {
		t.Errorf("a changed score: error %v", err)
	}
}
