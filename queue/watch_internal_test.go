package queue

import (
	"testing"
	"time"
)

// The server removes the mark of a deletion after tombstoneAge. Half of it is enough to expect that.
func TestVersionExpires(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		deleted bool
		age     time.Duration
		want    bool
	}{{true, tombstoneAge/2 - time.Minute, false}, {true, tombstoneAge/2 + time.Minute, true}, {false, 2 * tombstoneAge, false}} {
		v := version{revision: 1, written: time.Now().Add(-c.age).UnixNano(), deleted: c.deleted}
		if v.expired() != c.want {
			t.Errorf("deleted %t, %v old: expired %t", c.deleted, c.age, v.expired())
		}
	}
}
