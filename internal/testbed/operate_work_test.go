package testbed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddiff/internal/record"
)

// TestOperateWork does what a team does day by day, and kills a process in each step: a deadline, a campaign of each night, rows that are added,
// rows that a watch finds, an archive of a selection, and a cap of an owner.
func TestOperateWork(t *testing.T) {
	t.Parallel()
	onlyBy(t, "make operate-test", "DDIFF_OPERATE")
	c := startCluster(t, Options{Directory: true, Lease: 2 * time.Second})
	address := map[string]string{} // by coordinator
	add := func(name string, args ...string) {
		address[name] = listening(t)
		_, err := c.AddCoordinator(t.Context(), append(args, "--nats-wait", "30s", "--price", "1", "--listen", address[name], "--require-tokens")...)
		must(t, err)
	}
	add("coordinator-1")
	add("coordinator-2")
	secret := c.token(t.Context(), t, "submitter")
	// kill kills the leader while something is done, and starts it again.
	kill := func(t *testing.T, do func()) {
		t.Helper()
		leader, err := c.Leader(t.Context())
		must(t, err)
		done := make(chan struct{})
		go func() { defer close(done); do() }()
		leader.Kill()
		<-done
		must(t, poll(t.Context(), time.Minute, "another leader", func() (bool, error) {
			now, err := c.Leader(t.Context())
			return err == nil && now != leader, nil
		}))
		must(t, leader.Start())
		must(t, leader.WaitLog(t.Context(), "coordinator is ready"))
	}
	status := func(t *testing.T, id, what string, is func(s record.CampaignStatus) bool) {
		t.Helper()
		var s record.CampaignStatus
		if err := poll(t.Context(), time.Minute, what, func() (bool, error) {
			s = record.CampaignStatus{}
			return json.Unmarshal([]byte(ask(t, c, "status", "--json", id).stdout), &s) == nil && is(s), nil
		}); err != nil {
			t.Fatalf("%v: %+v %+v", err, s.Campaign, s.Status)
		}
	}
	dir := photographs(t, "chelsea", "coffee")
	file := func(name, more string) string {
		path := filepath.Join(t.TempDir(), name+".yaml")
		write(t, path, fmt.Appendf(nil, "name: %s\ndataset: {path: %q, size: 64}\ntasks: [hdr]\nsteps: 2\n%s\n", name, dir, more))
		return path
	}
	get := func(t *testing.T, of, path string, from int) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address[of]+"/api/v1/campaigns/"+path, nil)
		must(t, err)
		r.Header.Set("Authorization", "Bearer "+secret)
		if from > 0 {
			r.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
		}
		a, err := http.DefaultClient.Do(r)
		must(t, err)
		return a
	}
	nightly := file("any", "")
	var id string
	takeSteps(t, []step{
		{"a deadline that has passed", func(t *testing.T) {
			id := submit(t, c, file("deadline", "deadline: 2000-01-01T00:00:00Z"), "--canary", "0")
			late := func(s record.CampaignStatus) bool {
				return s.Status.Late == record.LateHas && s.Campaign.Urgent && strings.Contains(s.Status.Warning, "has passed")
			}
			status(t, id, "a late campaign", late)
			kill(t, func() {})
			status(t, id, "a late campaign after a takeover", late)
			worker(t, c)
			wantFinished(t, c, id, 2)
			status(t, id, "the end of its urgency", func(s record.CampaignStatus) bool { return !s.Campaign.Urgent })
		}},
		{"a campaign of each night", func(t *testing.T) {
			var first, second ended
			kill(t, func() { first = ask(t, c, "submit", nightly, "--name", "night-1", "--canary", "0") })
			second = ask(t, c, "submit", nightly, "--name", "night-1")
			id = strings.TrimSpace(first.stdout)
			if first.code != 0 || second.code != 0 || !strings.HasPrefix(id, "night-1-") || !strings.Contains(second.stdout, id) {
				t.Fatalf("%v\n%v", first, second)
			}
			wantFinished(t, c, id, 2)
		}},
		{"rows that are added", func(t *testing.T) {
			write(t, filepath.Join(dir, "rocket.png"), read(t, photograph("rocket")))
			var e ended
			kill(t, func() { e = ask(t, c, "append", id) })
			if e.code != 0 || e.stdout != "appended=1 overwritten=0\n" {
				t.Fatalf("%v", e)
			}
			wantFinished(t, c, id, 3)
			if e := ask(t, c, "append", id); e.stdout != "appended=0 overwritten=0\n" {
				t.Errorf("%v", e)
			}
		}},
		{"rows that a watch finds", func(t *testing.T) {
			dir = photographs(t, "chelsea")
			id := submit(t, c, file("watched", ""), "--canary", "0")
			wantFinished(t, c, id, 1)
			watcher := NewProcess(c.path("logs"), "watcher", c.Environment(RoleUser, c.Cache("watcher")), program, "append", id, "--every", "1s")
			t.Cleanup(watcher.Kill)
			supervise := func(until string, times int) {
				t.Helper()
				must(t, poll(t.Context(), time.Minute, until, func() (bool, error) {
					if !watcher.Running() {
						must(t, watcher.Start())
					}
					return strings.Count(watcher.Log(), until) >= times, nil
				}))
			}
			supervise("appended=0 overwritten=0\n", 1)
			write(t, filepath.Join(dir, "coffee.png"), read(t, photograph("coffee")))
			watcher.Kill()
			supervise("appended=1 overwritten=0\n", 1)
			wantFinished(t, c, id, 2)
			kill(t, func() { write(t, filepath.Join(dir, "rocket.png"), read(t, photograph("rocket"))) })
			supervise("appended=1 overwritten=0\n", 2)
			wantFinished(t, c, id, 3)
		}},
		{"an archive of a selection", func(t *testing.T) {
			path := id + "/archive?limit=2&sort=psnr"
			leader, err := c.Leader(t.Context())
			must(t, err)
			other := map[string]string{"coordinator-1": "coordinator-2", "coordinator-2": "coordinator-1"}[leader.Name]
			a := get(t, other, path, 0)
			whole, err := io.ReadAll(a.Body)
			must(t, err)
			must(t, a.Body.Close())
			begun := get(t, leader.Name, path, 0)
			half := make([]byte, len(whole)/2)
			_, err = io.ReadFull(begun.Body, half)
			must(t, err)
			kill(t, func() {})
			must(t, begun.Body.Close())
			a = get(t, other, path, len(half))
			rest, err := io.ReadAll(a.Body)
			must(t, err)
			must(t, a.Body.Close())
			if a.StatusCode != http.StatusPartialContent || !bytes.Equal(append(half, rest...), whole) || !bytes.Contains(whole, []byte("restored.png")) {
				t.Errorf("%s: %d and %d bytes of %d", a.Status, len(half), len(rest), len(whole))
			}
		}},
		{"a copy with a token alone", func(t *testing.T) {
			leader, err := c.Leader(t.Context())
			must(t, err)
			copied := t.TempDir()
			command := func() *exec.Cmd {
				return with(c.Command(t.Context(), "pull", id, copied, "--server", "http://"+address[leader.Name]), "DDIFF_TOKEN="+secret)
			}
			damaged, err := filepath.Glob(filepath.Join(c.Results(id), "items", "*", "restored.png"))
			must(t, err)
			picture := read(t, damaged[0])
			write(t, damaged[0], append([]byte("x"), picture...))
			e := end(t, command())
			if wantCode(t, e, 3); !strings.Contains(e.stdout, "items=3 copied=2 present=0 unfinished=0 wrong=1") || !strings.Contains(e.stderr, "restored.png: has the SHA-256") {
				t.Errorf("%v", e)
			}
			write(t, damaged[0], picture)
			must(t, os.RemoveAll(filepath.Join(copied, "items")))
			killed := command()
			must(t, killed.Start())
			must(t, poll(t.Context(), time.Minute, "a copied file", func() (bool, error) {
				_, err := os.Stat(filepath.Join(copied, "items"))
				return err == nil, nil
			}))
			must(t, killed.Process.Kill())
			_ = killed.Wait() // it was killed
			e = end(t, command())
			if wantCode(t, e, 0); !strings.Contains(e.stdout, "items=3 ") || !strings.Contains(e.stdout, " unfinished=0 wrong=0 ") {
				t.Errorf("%v", e)
			}
			if e := end(t, c.Command(t.Context(), "verify", copied)); e.code != 0 || !strings.Contains(e.stdout, "checked=3 ok=3 wrong=0") {
				t.Errorf("%v", e)
			}
		}},
		{"a cap of an owner", func(t *testing.T) {
			for _, p := range c.Coordinators {
				p.Kill()
			}
			add("coordinator-3", "--cap", "vera=0.000001")
			add("coordinator-4", "--cap", "vera=0.000001")
			order := func(file, name string) string {
				e := end(t, with(c.Command(t.Context(), "submit", file, "--name", name, "--canary", "0", "--server", "http://"+address["coordinator-4"]), "DDIFF_TOKEN="+secret))
				wantCode(t, e, 0)
				return strings.TrimSpace(e.stdout)
			}
			held := func(s record.CampaignStatus) bool {
				return s.Campaign.Phase == record.PhasePaused && s.Campaign.Wanted == record.WantRun && strings.Contains(s.Status.Reason, "the campaigns of vera cost")
			}
			dir = photographs(t, "chelsea") // a campaign without open items does not wait
			wantFinished(t, c, order(file("one", ""), "first"), 1)
			second := order(nightly, "second")
			status(t, second, "a campaign above the cap", held)
			kill(t, func() {})
			status(t, second, "a campaign above the cap after a takeover", held)
			if e := ask(t, c, "resume", second); e.code != 0 || !strings.Contains(e.stdout, ": resume requested, now paused: limit reached: the campaigns of vera cost") {
				t.Errorf("%v", e)
			}
			for _, p := range c.Coordinators {
				p.Kill()
			}
			add("coordinator-5", "--cap", "vera=1000")
			wantFinished(t, c, second, 3)
		}},
	})
}
