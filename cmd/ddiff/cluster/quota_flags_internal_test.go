package cluster

import (
	"math"
	"strings"
	"testing"
)

func TestParseQuotas(t *testing.T) {
	t.Parallel()
	q, err := parseQuotas([]string{"a:b:items=5,cost=2", "*:seconds=60"}, 0.5)
	if err != nil || q.Of("a:b").Items != 5 || q.Of("bob").Seconds != 60 {
		t.Errorf("%+v, %v", q, err)
	}
	for _, tt := range []struct {
		flags []string
		price float64
		want  string
	}{
		{nil, -1, "--price"},
		{nil, math.Inf(1), "--price"},
		{nil, math.NaN(), "--price"},
		{[]string{"items=5"}, 1, "has no owner"},
		{[]string{":items=5"}, 1, "has no owner"},
		{[]string{"ann:hours=5"}, 1, "--quota ann"},
		{[]string{"ann:items=5", "ann:items=6"}, 1, "repeated"},
		{[]string{"ann:cost=5"}, 0, "give --price too"},
	} {
		if _, err := parseQuotas(tt.flags, tt.price); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %s", tt.flags, err, tt.want)
		}
	}
}
