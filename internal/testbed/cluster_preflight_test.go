package testbed

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestClusterKilledPreflight kills the worker of a preflight, as a kernel does when memory runs out. While nobody else has leased the
// preflight, and after the campaign is rejected, status and logs name the worker and its memory.
func TestClusterKilledPreflight(t *testing.T) {
	t.Parallel()
	c := startSmallCluster(t, Options{})
	coordinator(t, c)
	file := filepath.Join(t.TempDir(), "killed.yaml")
	write(t, file, fmt.Appendf(nil, "name: killed\ndataset: {path: %q, size: 64}\ntasks: [super_resolution]\nattempts: 1\n", photographs(t, "chelsea")))
	first := worker(t, c, "--name", "small")
	id := submit(t, c, file)
	must(t, first.WaitLog(t.Context(), "campaign passed a preflight check")) // others follow
	first.Kill()

	named := func(when string) {
		t.Helper()
		const remedy = "a kernel ends a worker that has too little memory"
		var e ended
		for end := time.Now().Add(commandLimit); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
			if e = ask(t, c, "status", id); strings.Contains(e.stdout, when) && strings.Contains(e.stdout, remedy) {
				break
			}
		}
		for _, text := range []string{e.stdout, ask(t, c, "logs", id).stderr} {
			if !strings.Contains(text, when) || !strings.Contains(text, "small") || !strings.Contains(text, remedy) {
				logProcesses(t, c)
				t.Fatalf("%s: want the worker, its memory and %q:\n%s", when, remedy, text)
			}
		}
	}
	named("without an answer to the preflight")
	worker(t, c, "--name", "other")
	named("rejected")
}
