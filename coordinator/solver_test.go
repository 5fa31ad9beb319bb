package coordinator_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/restore/parameter"
)

// The coordinator checks the solver parameters of a record against the methods and the prior's schedule: a client may be
// of another version.
func TestSolverParametersRejected(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	tc.lead()
	n := 0
	for want, change := range map[string]func(s *manifest.Spec){
		"solver.t0: 1001 is outside integers in [0, 1000] or none": func(s *manifest.Spec) { s.Solver = parameter.Values{"t0": {Number: 1001}} },
		`solver.zeta: unknown parameter of ddiff "zeta"`:           func(s *manifest.Spec) { s.Solver = parameter.Values{"zeta": {Number: 0.5}} },
		`tasks[1].solver.a: "1" is a text, want [0, 1e+06]`:        func(s *manifest.Spec) { s.Tasks[1].Solver = parameter.Values{"a": {Word: "1"}} },
		"tasks[0].steps: 1001 is out of range, want 2 to 1000":     func(s *manifest.Spec) { s.Tasks[0].Steps = 1001 },
		`methods[0]: unknown method "ddif"`:                        func(s *manifest.Spec) { s.Methods = []string{"ddif"} },
	} {
		n++
		spec := tc.spec(fmt.Sprint("parameters", n))
		change(spec)
		c, _, err := recordtest.Submit(t.Context(), tc.board, tc.store, spec, board.Order{}, time.Now())
		must(t, err)
		if s := tc.awaitPhase(c.ID, record.PhaseRejected); !strings.Contains(s.Campaign.Reason, want) {
			t.Errorf("reason %q, want %q in it", s.Campaign.Reason, want)
		}
	}
}

func TestSubmitRefusesNaN(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	spec := tc.spec("nan")
	spec.Solver = parameter.Values{"a": {Number: math.NaN()}}
	if c, _, err := recordtest.Submit(t.Context(), tc.board, tc.store, spec, board.Order{}, time.Now()); err == nil {
		t.Errorf("submitted as %s", c.ID)
	}
}

// A record that cannot be read does not disturb the other campaigns.
func TestUnreadableRecord(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	id := tc.submit("good", 0)
	data, _, err := tc.board.Get(t.Context(), record.KeyCampaignPrefix+id)
	must(t, err)
	var c record.Campaign
	must(t, json.Unmarshal(data, &c))
	bad := bytes.ReplaceAll(bytes.Replace(data, []byte(`"solver":{}`), []byte(`"solver":{"a":null}`), 1), []byte(id), []byte("bad-00000000"))
	if bytes.Equal(bad, data) {
		t.Fatalf("no solver in %s", data)
	}
	_, err = tc.board.Create(t.Context(), record.KeyCampaignPrefix+"bad-00000000", bad)
	must(t, err)
	tc.lead()
	tc.work(id)
	tc.awaitPhase(id, record.PhaseFinished)
}
