package aggregate

import (
	"strconv"
	"testing"

	"ddiff/internal/report/entry"
	"ddiff/internal/report/sweep"
)

// Up to ten approaches are compared in pairs, more of them with the first.
func TestComparisonsOfManyApproaches(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{1: 0, 2: 1, 9: 36, 10: 45, 11: 10, 12: 11} {
		var rows []Row
		for i := range n {
			r := Row{group: &entry.Group{}}
			r.Problem = sweep.Problem{Task: "hdr", Size: "64x64"}
			r.Method = strconv.Itoa(i)
			for image := range 3 {
				r.group.Measurements = append(r.group.Measurements, &entry.Measurement{
					Entry: &entry.Entry{
						Cell: &sweep.Cell{}, How: &entry.How{}, Measurement: [16]byte{byte(image)}, Image: uint64(image),
						Figures: entry.NewFigures(map[string]float64{"psnr": float64(20 + i*image)}),
					},
				})
			}
			rows = append(rows, r)
		}
		got := compare(rows, Varying{})
		if len(got) != want {
			t.Errorf("%d approaches have %d comparisons, want %d", n, len(got), want)
		}
		for i, c := range got {
			if n > 10 && (c.A != "0" || c.B != strconv.Itoa(i+1)) {
				t.Errorf("comparison %d of %d approaches is of %s and %s", i, n, c.A, c.B)
			}
			if c.Refused != "" || c.Difference.N != 3 || c.P == nil || c.PHolm == nil {
				t.Errorf("comparison %+v", c)
			}
		}
	}
}

// The text of a problem has what varies and what is known.
func TestVaryingTexts(t *testing.T) {
	t.Parallel()
	r := &Row{Cell: sweep.Cell{Problem: sweep.Problem{Sigma: 0.125, Size: "64x64"}, Approach: sweep.Approach{Method: "ddiff", Prior: "0123456789"}}}
	r.VaryingParams, r.VaryingSettings = "factor=2", "steps=50"
	all := Varying{Params: true, Sigma: true, Size: true, Prior: true, Settings: true}
	for _, c := range []struct {
		row     *Row
		varying Varying
		want    string
	}{
		{r, all, "factor=2, σ 0.125, 64x64; ddiff prior 01234567 steps=50"},
		{r, Varying{}, "; ddiff"},
		{&Row{Cell: sweep.Cell{Approach: sweep.Approach{Method: "dps"}}}, all, "σ 0; dps prior "},
		{r, Varying{Params: true}, "factor=2; ddiff"}, {r, Varying{Sigma: true}, "σ 0.125; ddiff"}, {r, Varying{Size: true}, "64x64; ddiff"},
	} {
		if got := c.varying.ProblemText(c.row) + "; " + c.varying.ApproachText(c.row); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
