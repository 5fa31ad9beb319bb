package report

import (
	"slices"
	"testing"

	"ddiff/coordinator/report/reporttest"
	"ddiff/manifest"
	"ddiff/restore/operator"
)

func TestRowsFollowTheOrderOfTheTasks(t *testing.T) {
	t.Parallel()
	var results []manifest.Result
	for _, task := range []string{"zoom", "hdr", "gaussian_deblur", "super_resolution", "inpaint_random", "denoise", "inpaint_box"} {
		results = append(results, reporttest.Result(t, task, "ddiff", "a.png", 0))
	}
	builtin := []string{"super_resolution", "inpaint_box", "inpaint_random", "gaussian_deblur", "hdr", "denoise", "zoom"}
	own := operator.Set{{Name: "zoom", Label: "Zoom lens"}, {Name: "hdr", Label: "HDR"}}
	listed := []string{"zoom", "hdr", "denoise", "gaussian_deblur", "inpaint_box", "inpaint_random", "super_resolution"}
	for _, tt := range []struct {
		tasks operator.Set
		want  []string
		label string // of hdr
	}{{nil, builtin, "High dynamic range"}, {own, listed, "HDR"}} {
		c := testCampaign()
		c.Tasks = tt.tasks
		s, err := Write(t.Context(), reporttest.NewMemory(), c, reporttest.Stream(results))
		reporttest.Must(t, err)
		var got []string
		for _, r := range s.Rows {
			got = append(got, r.Task)
			if r.Task == "hdr" && r.Label != tt.label {
				t.Errorf("label %q, want %q", r.Label, tt.label)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("order = %q, want %q", got, tt.want)
		}
	}
}
