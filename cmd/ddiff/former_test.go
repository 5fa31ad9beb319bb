package main_test

import (
	"strings"
	"testing"
)

// TestFormerVerbs: the former name of a verb does the same as the present one, after a line that names it.
func TestFormerVerbs(t *testing.T) {
	t.Parallel()
	nowhere := []string{"--nats", "nats://127.0.0.1:1"}
	for former, present := range map[string]string{
		"watch x":         "status x --watch",
		"dead list x":     "retry x --list",
		"dead show x y":   "retry x y --list --json",
		"dead retry x":    "retry x --dead",
		"dead export x":   "retry x --list --json",
		"reconcile x":     "retry x --missing",
		"watch x --json":  "status x --watch --json",
		"dead retry x yz": "retry x yz",
	} {
		got, want := ddiff(t, append(strings.Fields(former), nowhere...)...), ddiff(t, append(strings.Fields(present), nowhere...)...)
		note, rest, _ := strings.Cut(got.stderr, "\n")
		if got.code != want.code || want.code == 0 || got.stdout != want.stdout || rest != want.stderr || !strings.HasPrefix(note, "ddiff: note: ddiff "+strings.Split(former, " x")[0]+" is now: ddiff ") {
			t.Errorf("ddiff %s: %v\nddiff %s: %v", former, got, present, want)
		}
	}
}

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
