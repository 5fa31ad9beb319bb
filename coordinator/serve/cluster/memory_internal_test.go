package cluster

import (
	"testing"
	"time"
)

// A list is read again when it is old, after a write, and when a write came while it was read.
func TestMemory(t *testing.T) {
	t.Parallel()
	m := memory{lists: map[string]remembered{}}
	reads := 0
	list := func() int {
		got, _, err := recall(&m, "campaign.", func() (int, []error, error) { reads++; return reads, nil, nil })
		if err != nil {
			t.Error(err)
		}
		return got
	}
	steps := []struct {
		name   string
		before func()
		want   int
	}{
		{"first", func() {}, 1},
		{"again", func() {}, 1},
		{"after a write", m.wrote, 2},
		{"old", func() { m.lists["campaign."] = remembered{time.Now().Add(-memoryAge), 2, nil} }, 3},
		{"a write meanwhile", func() {
			m.wrote()
			if _, _, err := recall(&m, "campaign.", func() (int, []error, error) { m.wrote(); return 0, nil, nil }); err != nil {
				t.Error(err)
			}
		}, 4},
	}
	for _, s := range steps {
		if s.before(); list() != s.want {
			t.Errorf("%s: %d reads, want %d", s.name, reads, s.want)
		}
	}
}
