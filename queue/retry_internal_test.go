package queue

import (
	"fmt"
	"testing"
	"time"
)

func TestRetryDelay(t *testing.T) {
	t.Parallel()
	const base, limit = time.Second, time.Minute
	for attempt, full := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 6: 32 * time.Second, 7: time.Minute, 1000: time.Minute,
	} {
		seen := map[time.Duration]bool{}
		for i := range 100 {
			id := fmt.Sprint("item-", i)
			delay := retryDelay(base, limit, id, attempt)
			if delay < full/2 || delay >= full {
				t.Fatalf("attempt %d of %s waits %v, want [%v, %v)", attempt, id, delay, full/2, full)
			}
			if again := retryDelay(base, limit, id, attempt); again != delay {
				t.Fatalf("attempt %d of %s waits %v and then %v", attempt, id, delay, again)
			}
			seen[delay] = true
		}
		if len(seen) < 99 {
			t.Errorf("attempt %d: 100 items have only %d delays", attempt, len(seen))
		}
	}
}

func FuzzToken(f *testing.F) {
	for _, seed := range []string{"a", "a.b", "größe >*", "=41", "A", "\x00\xff"} {
		f.Add(seed, "a=2Eb")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		ta, errA := token("name", a)
		tb, errB := token("name", b)
		if errA != nil || errB != nil {
			return
		}
		for _, c := range []byte(ta) {
			if c <= ' ' || c >= 0x7f || c == '.' || c == '*' || c == '>' || c == '/' || c == '\\' {
				t.Fatalf("token(%q) = %q has %q", a, ta, c)
			}
		}
		if back, err := untoken(ta); err != nil || back != a {
			t.Fatalf("token(%q) = %q, which stands for %q, %v", a, ta, back, err)
		}
		if (a == b) != (ta == tb) {
			t.Fatalf("token(%q) = %q, token(%q) = %q", a, ta, b, tb)
		}
	})
}
