package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestLostOutput: a command whose output is lost ends with an error.
func TestLostOutput(t *testing.T) {
	t.Parallel()
	out := tiny(t, "--images", photograph("coffee"), "--task", "hdr")
	picture := filepath.Join(t.TempDir(), "a.png")
	write(t, picture, grey(16))
	for _, args := range [][]string{
		{"version"}, {"--version"}, {"help"}, {"run", "--help"}, {"verify", out}, {"verify", out, "--json"}, {"methods"}, {"tasks"},
		{"replay", filepath.Join(folderOf(t, out, "hdr"), "restored.png"), "--threads", "1"}, quick(picture, "--json"),
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			must(t, err)
			defer full.Close()
			cmd := command(t, args...)
			var stderr strings.Builder
			cmd.Stdout, cmd.Stderr = full, &stderr
			_ = cmd.Run() // the exit code follows
			if e := (ended{cmd.ProcessState.ExitCode(), "", stderr.String()}); e.code != 1 {
				t.Errorf("%q: exit code %d, want 1\n%v", args, e.code, e)
			} else {
				wantMessage(t, e, "ddiff: ", "no space left on device")
			}
		})
	}
}

// TestQuit: SIGQUIT prints the stacks, and its exit code is that of no other end.
func TestQuit(t *testing.T) {
	t.Parallel()
	p := begin(t, "--images", photographs(t, "coffee"), "--task", "hdr", "--steps", "400", "--out", filepath.Join(t.TempDir(), "out"))
	p.wait(t, &p.stdout, steps, 1)
	p.signal(t, syscall.SIGQUIT)
	e := p.end()
	wantCode(t, e, 131)
	wantMessage(t, e, "goroutine ", "[running]")
}

// TestEmptyFlags: an empty value, as of an unset variable, is refused and never the default.
func TestEmptyFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"run", "x.png", "--task", ""}, {"run", "x.png", "--task", "hdr,"}, {"run", "x.png", "--task", "hdr", "--precision", ""}, {"run", "x.png", "--task", "hdr", "--prior="},
		{"worker", "--allow-host", ""}, {"worker", "--allow-endpoint", ""}, {"worker", "--nats", " "}, {"run", "x.png", "--task", "hdr", "--out", ""},
	} {
		e := ddiff(t, args...)
		wantCode(t, e, 2)
		wantMessage(t, e, "ddiff: "+args[0]+": --", "is empty", "is a variable unset?")
	}
}
