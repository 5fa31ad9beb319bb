package telemetry

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestSolverTime: the time counts by campaign, from 0 until an hour after the last batch, and the number of campaigns has a limit.
func TestSolverTime(t *testing.T) {
	setOTel(t, nil)
	tel := start(t, Config{Prometheus: true})
	defer shutDown(t, tel)
	in, err := NewInstruments(tel.Meter("ddiff"))
	must(t, err)
	now := time.Now()
	in.SolverTime.now = func() time.Time { return now }
	want := func(values ...string) {
		t.Helper()
		got := map[string]string{}
		for s, v := range scrape(t, tel.Metrics()) {
			if strings.HasPrefix(s, "ddiff_solver_time") {
				got[s] = v
			}
		}
		expected := map[string]string{}
		for i := 0; i < len(values); i += 2 {
			expected[fmt.Sprintf("ddiff_solver_time_seconds_total{campaign=%q,owner=\"ann\"}", values[i])] = values[i+1]
		}
		if fmt.Sprint(got) != fmt.Sprint(expected) {
			t.Errorf("series %v, want %v", got, expected)
		}
	}
	in.SolverTime.Add("a", "ann", 0)
	want("a", "0")
	in.SolverTime.Add("a", "ann", 1500*time.Millisecond)
	now = now.Add(keepSeries / 2)
	in.SolverTime.Add("b", "ann", time.Second)
	want("a", "1.5", "b", "1")
	now = now.Add(keepSeries / 2)
	want("b", "1")
	for i := range 3 * maxCampaigns {
		now = now.Add(time.Second)
		in.SolverTime.Add(fmt.Sprint(i), "", time.Second)
	}
	if n := len(in.SolverTime.spent); n > maxCampaigns {
		t.Errorf("%d campaigns have series, want at most %d", n, maxCampaigns)
	}
}
