package main_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
)

// TestRules measures the rules on two images with three runs each.
func TestRules(t *testing.T) {
	t.Parallel()
	out := tiny(t, "--images", photographs(t, "coffee", "rocket"), "--task", "phase_retrieval", "--steps", "3", "--runs", "3")
	e := ddiff(t, "rules", out, "--of", "2", "--json")
	wantCode(t, e, 0)
	type choices struct {
		Of     int
		Groups []struct {
			Task  string
			Runs  int
			Rules []struct {
				Rule string
				PSNR struct {
					N    int
					Mean float64
				}
			}
		}
	}
	var got choices
	must(t, json.Unmarshal([]byte(e.stdout), &got))
	if got.Of != 2 || len(got.Groups) != 1 || got.Groups[0].Task != "phase_retrieval" || got.Groups[0].Runs != 6 || len(got.Groups[0].Rules) != 6 {
		t.Fatalf("%+v", got)
	}
	var sum float64
	for _, r := range wantItems(t, out, 6) {
		sum += *r.Metrics.PSNR
	}
	if first := got.Groups[0].Rules[0]; first.Rule != "first" || first.PSNR.N != 2 || !(first.PSNR.Mean >= sum/6-1e-9) || !(first.PSNR.Mean <= sum/6+1e-9) {
		t.Errorf("%+v, want the mean PSNR %g of all runs", first, sum/6)
	}
	wantLine(t, ddiff(t, "rules", out, "--of", "2", "--where", "image=coffee"), "min_misfit        1  ")

	// A rotation never lowers the PSNR, and leaves no SSIM to choose by.
	rotated := ddiff(t, "rules", out, "--of", "2", "--rotated", "--json")
	wantCode(t, rotated, 0)
	before := got.Groups[0].Rules[0].PSNR.Mean
	var counts struct{ Compared, Rotated int }
	got = choices{}
	must(t, json.Unmarshal([]byte(rotated.stdout), &got))
	must(t, json.Unmarshal([]byte(rotated.stdout), &counts))
	rules := got.Groups[0].Rules
	if counts.Compared != 6 || (counts.Rotated > 0) != (rules[0].PSNR.Mean > before) || !(rules[0].PSNR.Mean >= before) || rules[5].Rule != "best_ssim" || rules[5].PSNR.N != 0 {
		t.Errorf("%+v, first %+v after %g, best_ssim %+v", counts, rules[0].PSNR, before, rules[5].PSNR)
	}
	wantLine(t, ddiff(t, "rules", out, "--of", "2", "--rotated"), fmt.Sprintf("rotated by 180°: %d of 6 runs", counts.Rotated))

	wantRefusals(t, []string{"rules"}, []refusal{
		{[]string{out}, 2, "not comparable: no measurement has 4 finished runs with a PSNR; run more, or choose among fewer"},
		{[]string{out, "--of", "0"}, 2, "--of 0 is below 1"},
		{[]string{out, "--within", "-1"}, 2, "--within -1 is not a finite number from 0"},
		{[]string{out, "--where", "gama0=3"}, 2, "no result has this property"},
		{[]string{filepath.Join(out, "none")}, 2, "no such directory"},
	})
}
