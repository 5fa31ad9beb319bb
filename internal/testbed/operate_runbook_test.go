package testbed

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/internal/record"
	"ddiff/restore/item"
)

// composeHealth returns the health check of compose.yaml for a process that listens at an address.
func composeHealth(t *testing.T, address string) func() *exec.Cmd {
	t.Helper()
	m := regexp.MustCompile(`test: \[CMD, bash, -c, "(exec 3.*)"\]`).FindStringSubmatch(string(read(t, filepath.Join(root, "compose.yaml"))))
	if m == nil {
		t.Fatal("compose.yaml has no health check with bash")
	}
	script := strings.NewReplacer(`\\`, `\`, "127.0.0.1/8090", strings.Replace(address, ":", "/", 1)).Replace(m[1])
	return func() *exec.Cmd { return exec.CommandContext(t.Context(), "timeout", "5", "bash", "-c", script) }
}

// TestOperateRunbook runs every command of the sections Alerts and Diagnosis of docs/operations.md, in their order, on a campaign with failed items,
// and checks the restored copy of its output.
func TestOperateRunbook(t *testing.T) {
	t.Parallel()
	onlyBy(t, "make operate-test", "DDIFF_OPERATE")
	page := string(read(t, filepath.Join(root, "docs", "operations.md")))
	_, section, _ := strings.Cut(page, "\n## Diagnosis\n")
	_, block, _ := strings.Cut(section, "```sh\n")
	block, _, found := strings.Cut(block, "```")
	if !found {
		t.Fatal("docs/operations.md has no commands for the diagnosis")
	}
	_, alerts, _ := strings.Cut(page, "\n## Alerts\n")
	alerts, _, _ = strings.Cut(alerts, "\n## ")
	var commands []string
	for _, m := range regexp.MustCompile("`(ddiff [^`]+)`").FindAllStringSubmatch(alerts, -1) {
		if !slices.Contains(commands, m[1]) {
			commands = append(commands, m[1])
		}
	}
	if len(commands) < 8 {
		t.Fatalf("docs/operations.md has only the commands %q for the alerts", commands)
	}
	commands = append(commands, strings.Split(strings.TrimSpace(block), "\n")...)
	c := startCluster(t, Options{Directory: true, Lease: 2 * time.Second})
	_, err := c.AddCoordinator(t.Context(), "--nats-wait", "30s", "--price", "1")
	must(t, err)
	dir := photographs(t, "chelsea", "coffee", "rocket")
	whole := read(t, filepath.Join(dir, "coffee.png"))
	write(t, filepath.Join(dir, "cut.png"), whole[:len(whole)*2/3])
	campaign := func(name, more string) string {
		file := filepath.Join(t.TempDir(), name+".yaml")
		write(t, file, fmt.Appendf(nil, "name: %s\ndataset: {path: %q, size: 64}\ntasks: [hdr]\nsteps: 2\n%s\n", name, dir, more))
		return submit(t, c, file, "--canary", "0")
	}
	id := campaign("runbook", "")
	must(t, poll(t.Context(), time.Minute, "the windows", func() (bool, error) {
		windows, err := filepath.Glob(filepath.Join(c.Store(), "campaigns", id, "shards", "*"))
		return len(windows) > 0, err
	}))
	must(t, os.Remove(filepath.Join(dir, "rocket.png"))) // two workers cannot read it: it fails
	worker(t, c, "--batch", "1")
	worker(t, c, "--batch", "1")
	e := ask(t, c, "status", "--watch", id)
	if want := "done=2 failed=2 dead=0 lost=0\n"; e.stdout != want {
		t.Fatalf("want %q\n%v", want, e)
	}
	var failed record.AttemptLog
	for line := range strings.Lines(ask(t, c, "logs", id, "--json").stdout) {
		if must(t, json.Unmarshal([]byte(line), &failed)); failed.Outcome == string(item.OutcomeFailed) {
			break
		}
	}
	other := campaign("other", "pool: nobody") // to pause, to resume and to cancel: it does not end by itself
	wantCode(t, ask(t, c, "pause", other), 0)
	steps := []step{{"verify", func(t *testing.T) {
		if e := ask(t, c, "verify", c.Results(id)); e.code != 0 || !strings.Contains(e.stdout, "wrong=0 unfinished=0") {
			t.Errorf("%v", e)
		}
	}}}
	for _, line := range commands {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		words := regexp.MustCompile(`'[^']*'|\S+`).FindAllString(strings.NewReplacer(" ID", " "+id, "ITEM", failed.ID, "ADDRESS", c.Store()).Replace(line), -1)
		for i := range words {
			words[i] = strings.Trim(words[i], "'")
		}
		if len(words) < 2 || words[0] != "ddiff" {
			t.Errorf("%q is no command of ddiff", line)
			continue
		}
		steps = append(steps, step{line, func(t *testing.T) {
			args := words[1:]
			switch args[0] {
			case "delete":
				args = append(args, "--yes") // it asks
			case "pause", "resume", "cancel", "change":
				args[1] = other
			}
			if e := ask(t, c, args...); e.code != 0 {
				t.Errorf("%v", e)
			}
			if args[0] == "retry" { // the items end again
				ask(t, c, "status", "--watch", id)
			}
		}})
	}
	takeSteps(t, steps)
}
