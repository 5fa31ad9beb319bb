package report

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/result"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/table"
	"ddiff/restore/item"
	"github.com/parquet-go/parquet-go"
)

// TestOneVersionPerTable mixes versions of a metric in every way that a table could.
func TestOneVersionPerTable(t *testing.T) {
	t.Parallel()
	base := reporttest.Scored(25, 20, 0.8, 0.001)
	newer := func(r *item.Result) { r.MetricIDs["psnr"] = "psnr@2" }
	for _, tt := range []struct {
		name         string
		first, other []func(*item.Result)
		pin          string
		want         map[string]string // chosen
		refused      string
	}{
		{name: "no other version", want: map[string]string{"psnr": "psnr@1"}},
		{name: "stored pictures too: the worker's version covers all", first: []func(*item.Result){reporttest.Later("psnr@1:png", 24)}, want: map[string]string{"psnr": "psnr@1"}},
		{name: "two versions of workers", other: []func(*item.Result){newer}, refused: "psnr: psnr@1 (1 of 2 items), psnr@2 (1 of 2 items)"},
		{name: "two networks", first: []func(*item.Result){reporttest.Later("lpips_vgg@1:aaaaaaaa", 0.1)}, other: []func(*item.Result){reporttest.Later("lpips_vgg@1:bbbbbbbb", 0.1)}, refused: "--metric-version lpips_vgg@1:aaaaaaaa (ddiff compare: --metric)"},
		{name: "two networks, one chosen", first: []func(*item.Result){reporttest.Later("lpips_vgg@1:aaaaaaaa", 0.1)}, other: []func(*item.Result){reporttest.Later("lpips_vgg@1:bbbbbbbb", 0.1)}, pin: "lpips_vgg@1:bbbbbbbb", want: map[string]string{"lpips_vgg": "lpips_vgg@1:bbbbbbbb"}},
		{name: "two networks on all items", first: []func(*item.Result){reporttest.Later("lpips_vgg@1:aaaaaaaa", 0.1), reporttest.Later("lpips_vgg@1:bbbbbbbb", 0.2)}, refused: "lpips_vgg@1:aaaaaaaa (1 of 2 items), lpips_vgg@1:bbbbbbbb (1 of 2 items)"},
		{name: "different networks are different metrics", first: []func(*item.Result){reporttest.Later("lpips_vgg@1:aaaaaaaa", 0.1), reporttest.Later("lpips_alex@1:bbbbbbbb", 0.2)}, want: map[string]string{"lpips_vgg": "lpips_vgg@1:aaaaaaaa", "lpips_alex": "lpips_alex@1:bbbbbbbb"}},
		{name: "a worker's metric that old results lack", first: []func(*item.Result){func(r *item.Result) { r.Metrics["haarpsi"] = 0.9 }}, other: []func(*item.Result){reporttest.Later("haarpsi@1:png", 0.9)}, refused: "haarpsi: haarpsi@1 (1 of 2 items), haarpsi@1:png (1 of 2 items)"},
		{name: "a pinned version that nobody has", pin: "psnr@9", refused: "no result has a score of psnr@9"},
		{name: "the metric does not apply", first: []func(*item.Result){func(r *item.Result) { r.Scores = []item.Score{{Metric: "lpips_vgg@1:aaaaaaaa"}} }}, want: map[string]string{"lpips_vgg": ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			results := []item.Result{
				reporttest.Result(t, "hdr", "ddiff", "a", 0, append([]func(*item.Result){base}, tt.first...)...),
				reporttest.Result(t, "hdr", "ddiff", "b", 0, append([]func(*item.Result){base}, tt.other...)...),
			}
			var pins []string
			if tt.pin != "" {
				pins = []string{tt.pin}
			}
			v, err := result.ParseVersions(pins)
			reporttest.Must(t, err)
			s, err := aggregate.Summarize(v.Select(reporttest.Stream(results)), nil, "", nil)
			if tt.refused != "" {
				if !errors.Is(err, result.ErrVersions) || !strings.Contains(err.Error(), tt.refused) || strings.Contains(err.Error(), "\n") {
					t.Errorf("error %v, want one line with %q", err, tt.refused)
				}
				return
			}
			reporttest.Must(t, err)
			for name, id := range tt.want {
				if s.MetricIDs[name] != id {
					t.Errorf("%s = %q, want %q", name, s.MetricIDs[name], id)
				}
			}
		})
	}
	for _, bad := range []string{"psnr", "psnr@", "PSNR@1", "../x@1", "a@1/2"} {
		if _, err := result.ParseVersions([]string{bad}); !errors.Is(err, result.ErrVersions) {
			t.Errorf("%q: %v, want ErrVersions", bad, err)
		}
	}
	if _, err := result.ParseVersions([]string{"psnr@1", "psnr@2"}); !errors.Is(err, result.ErrVersions) {
		t.Errorf("two versions chosen: %v", err)
	}
}

// TestFurtherMetrics follows a score that was computed after solving to every table.
func TestFurtherMetrics(t *testing.T) {
	t.Parallel()
	const id = "lpips_vgg@1:aaaaaaaa"
	results := []item.Result{
		reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(25, 20, 0.8, 0.001), reporttest.Later(id, 0.2)),
		reporttest.Result(t, "hdr", "ddiff", "a", 1, reporttest.Scored(27, 20, 0.8, 0.001), reporttest.Later(id, 0.4)),
		reporttest.Result(t, "hdr", "ddiff", "b", 0, reporttest.Scored(25, 20, 0.8, 0.001), reporttest.Later(id, 0.5)),
		reporttest.Result(t, "hdr", "ddiff", "c", 0, reporttest.Scored(25, 20, 0.8, 0.001)),
		reporttest.Result(t, "hdr", "ddiff", "d", 0, reporttest.Ended(item.OutcomeFailed, "no such file")),
	}
	s, err := aggregate.Summarize(reporttest.Stream(results), nil, selection.Mean, nil)
	reporttest.Must(t, err)
	if e := s.Rows[0].Means["lpips_vgg"]; e.N != 2 || !(math.Abs(e.Mean-0.4) <= 1e-12) || e.HalfWidth == nil {
		t.Errorf("estimate %+v, want the mean 0.4 of two images", e)
	}
	for format, want := range map[table.Format]string{table.FormatText: " lpips_vgg ", table.FormatMarkdown: `| lpips\_vgg |`, table.FormatLaTeX: `& Lpips\_vgg &`} {
		var out strings.Builder
		reporttest.Must(t, table.Write(&out, s, format))
		reporttest.Contains(t, out.String(), want, "0.4000", "vgg@1:aaaaaaaa", "1 of 4 finished items have no score of")
	}
	var csv strings.Builder
	reporttest.Must(t, table.WriteCSV(&csv, reporttest.Stream(results), nil))
	reporttest.Contains(t, csv.String(), ",residual_ratio,lpips_vgg,seconds,", ",0.2,2,100,0,300,0,0,100,center_crop,lpips_vgg@1:aaaaaaaa;psnr@1;residual@2;ssim@1,,\n", ",,2,100,0,300,0,0,100,center_crop,", ",,,,,,,,,,,,,,center_crop,,,\n")
	var out bytes.Buffer
	reporttest.Must(t, table.WriteParquet(&out, reporttest.Stream(results), nil))
	rows, err := parquet.Read[struct {
		Image string   `parquet:"image"`
		PSNR  *float64 `parquet:"psnr"`
		LPIPS *float64 `parquet:"lpips_vgg"`
	}](bytes.NewReader(out.Bytes()), int64(out.Len()))
	reporttest.Must(t, err)
	var got []string
	for _, r := range rows {
		got = append(got, fmt.Sprintf("%s %t %t", r.Image, r.PSNR != nil, r.LPIPS != nil))
	}
	if want := "a true true,a true true,b true true,c true false,d false false"; strings.Join(got, ",") != want {
		t.Errorf("Parquet rows %v, want %s", got, want)
	}
}

// TestRunLeavesOutMixedMetrics: the report at the end of a run has no figures of a metric with two versions.
func TestRunLeavesOutMixedMetrics(t *testing.T) {
	t.Parallel()
	results := []item.Result{
		reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(25, 20, 0.8, 0.001), reporttest.Later("lpips_vgg@1:aaaaaaaa", 0.2), reporttest.Later("lpips_vgg@1:bbbbbbbb", 0.3)),
		reporttest.Result(t, "hdr", "ddiff", "b", 0, reporttest.Scored(27, 20, 0.8, 0.004), func(r *item.Result) { r.MetricIDs["residual"] = "residual@3" }),
	}
	store := reporttest.NewMemory()
	if _, err := Write(t.Context(), store, Campaign{}, reporttest.Stream(results)); !errors.Is(err, result.ErrVersions) {
		t.Errorf("error %v, want ErrVersions", err)
	}
	s, err := Write(t.Context(), store, Campaign{LeaveOut: true}, reporttest.Stream(results))
	reporttest.Must(t, err)
	if r := s.Rows[0]; r.PSNR().N != 2 || r.Means["residual"].N != 0 || fmt.Sprint(slices.Sorted(maps.Keys(r.Means))) != "[autoencoder autoencoder_backward baseline_psnr gain network network_backward operator psnr seconds ssim]" || s.MetricIDs["residual"] != "" {
		t.Errorf("row %+v, versions %v", r, s.MetricIDs)
	}
	text := string(store.Files[KeySummaryMarkdown])
	reporttest.Contains(t, text, "Left out: metric versions of residual: residual@2 (1 of 2 items), residual@3 (1 of 2 items)", "metric versions of lpips")
	if shown := string(store.Files[KeyCSV]); strings.Contains(shown, "residual@") || strings.Contains(shown, "0.004") || strings.Contains(shown, "lpips") {
		t.Errorf("results.csv has figures of a mixed metric:\n%s", shown)
	}
}

// TestPinnedVersionHidesTheBaseline: a gain is a difference of one version.
func TestPinnedVersionHidesTheBaseline(t *testing.T) {
	t.Parallel()
	v, err := result.ParseVersions([]string{"psnr@1:png"})
	reporttest.Must(t, err)
	s, err := aggregate.Summarize(v.Select(reporttest.Stream([]item.Result{
		reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(25, 20, 0.8, 0.001), reporttest.Later("psnr@1:png", 24)),
	})), nil, "", nil)
	reporttest.Must(t, err)
	if r := s.Rows[0]; r.PSNR().Mean != 24 || r.Means["baseline_psnr"].N != 0 || r.Means["gain"].N != 0 || r.Means["ssim"].Mean != 0.8 {
		t.Errorf("row %+v", r)
	}
}

// TestOnlyScores leaves the scores of one metric, of all its versions.
func TestOnlyScores(t *testing.T) {
	t.Parallel()
	results := []item.Result{reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Later("lpips_vgg@1:aaaaaaaa", 0.1), reporttest.Later("niqe@1", 3), reporttest.Later("lpips_vgg@2", 0.2))}
	for metric, want := range map[string]string{"lpips_vgg": "lpips_vgg@1:aaaaaaaa lpips_vgg@2", "niqe": "niqe@1", "": ""} {
		for r, err := range result.OnlyScores(reporttest.Stream(results), metric) {
			reporttest.Must(t, err)
			var ids []string
			for _, s := range r.Scores {
				ids = append(ids, s.Metric)
			}
			if got := strings.Join(ids, " "); got != want {
				t.Errorf("%q: scores %s, want %s", metric, got, want)
			}
		}
	}
	if len(results[0].Scores) != 3 {
		t.Error("the results themselves changed")
	}
}

// TestNotesOfLaterScores: the notes of a table tell scores of pictures from those of unclipped images.
func TestNotesOfLaterScores(t *testing.T) {
	t.Parallel()
	s := summaryOf(t, []item.Result{reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(25, 20, 0.8, 0.001),
		reporttest.Later("lpips_vgg@1:aaaaaaaa", 0.1), reporttest.Later("lpips_alex@1_unclipped:bbbbbbbb", 0.2))}, selection.First)
	var out bytes.Buffer
	reporttest.Must(t, table.Write(&out, s, table.FormatText))
	reporttest.Contains(t, out.String(), "from the stored pictures: lpips_vgg@1:aaaaaaaa.", "from the stored unclipped images: lpips_alex@1_unclipped:bbbbbbbb.")
}
