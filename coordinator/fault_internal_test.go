package coordinator

import (
	"testing"
	"time"

	"ddiff/internal/record"
)

// A fault pauses the campaign if nothing was finished in the reported time and all workers on it have reported one of late.
func TestFaultPauses(t *testing.T) {
	t.Parallel()
	const limit = 10 * time.Second
	for _, c := range []struct {
		name     string
		quiet    time.Duration
		works    string        // a worker on the campaign
		reported time.Duration // age of the report of the other worker, 0 for none
		want     bool
	}{
		{"alone, quiet long enough", limit, "", 0, true},
		{"alone, not quiet", limit - 1, "", 0, false},
		{"another works", limit, "other", 0, false},
		{"another has reported", limit, "other", 2 * limit, true},
		{"another has reported too long ago", limit, "other", 2*limit + 1, false},
		{"only itself works", limit, "gpu", 0, true},
	} {
		now := time.Unix(1e9, 0)
		var s faults
		if c.reported > 0 {
			s.last = map[string]time.Time{"other": now.Add(-c.reported)}
		}
		s.note(record.Fault{Worker: "gpu", Reason: "no disk", Seconds: 10}, now, now.Add(-c.quiet), func(except func(string) bool) bool {
			return c.works != "" && !except(c.works)
		})
		if got := s.take(); (got != nil) != c.want || s.take() != nil {
			t.Errorf("%s: fault %+v", c.name, got)
		}
	}
	for _, damaged := range []string{`{"worker"`, `{"worker":"gpu"}`, `{"worker":"gpu","seconds":-1}`, `{"worker":"gpu","seconds":1e12}`} {
		if f, err := decodeFault([]byte(damaged)); err == nil {
			t.Errorf("the report %s: fault %+v", damaged, f)
		}
	}
}
