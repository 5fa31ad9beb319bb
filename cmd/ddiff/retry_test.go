package main_test

import (
	"strings"
	"testing"
)

// TestRetryRefuses conditions that contradict each other.
func TestRetryRefuses(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"", "--list --dead", "--json --dead", "--missing --failed", "--missing --list", "id --failed", "id --missing", "--failed --where x"} {
		e := ddiff(t, append([]string{"retry", "x", "--nats", "nats://127.0.0.1:1"}, strings.Fields(args)...)...)
		if e.code != 2 || strings.Count(e.stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, want 2 and one line\n%v", args, e.code, e)
		}
	}
}
