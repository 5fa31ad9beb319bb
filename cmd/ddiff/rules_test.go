package main_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// TestRules measures the rules on two images with three runs each.
func TestRules(t *testing.T) {
	t.Parallel()
	out := tiny(t, "--images", photographs(t, "coffee", "rocket"), "--task", "phase_retrieval", "--steps", "3", "--runs", "3")
	e := ddiff(t, "rules", out, "--of", "2", "--json")
	wantCode(t, e, 0)
	var got struct {
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
	must(t, json.Unmarshal([]byte(e.stdout), &got))
	if got.Of != 2 || len(got.Groups) != 1 || got.Groups[0].Task != "phase_retrieval" || got.Groups[0].Runs != 6 || len(got.Groups[0].Rules) != 6 {
		t.Fatalf("%+v", got)
	}
	var sum float64
	for _, r := range wantItems(t, out, 6) {
		sum += *r.Metrics.PSNR
	}
	if first := got.Groups[0].Rules[0]; first.Rule != "first" || first.PSNR.N != 2 || first.PSNR.Mean < sum/6-1e-9 || first.PSNR.Mean > sum/6+1e-9 {
		t.Errorf("%+v, want the mean PSNR %g of all runs", first, sum/6)
	}
	wantLine(t, ddiff(t, "rules", out, "--of", "2", "--where", "image=coffee"), "min_misfit        1  ")

	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{out}, "not comparable: no measurement has 4 finished runs with a PSNR; run more, or choose among fewer"},
		{[]string{out, "--of", "0"}, "--of 0 is below 1"},
		{[]string{out, "--within", "-1"}, "--within -1 is not a finite number from 0"},
		{[]string{out, "--where", "gama0=3"}, "no result has this property"},
		{[]string{filepath.Join(out, "none")}, "no such directory"},
	} {
		e := ddiff(t, append([]string{"rules"}, tt.args...)...)
		if e.code != 2 || !strings.Contains(e.stderr, tt.want) || strings.Count(e.stderr, "\n") != 1 {
			t.Errorf("%v: want exit code 2 and one line with %q\n%v", tt.args, tt.want, e)
		}
	}
}
