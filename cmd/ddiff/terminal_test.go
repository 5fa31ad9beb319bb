package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// onTerminal runs a command whose output is a terminal of the given width, and returns what it writes there.
func onTerminal(t *testing.T, cmd *exec.Cmd, width int) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	must(t, err)
	defer master.Close()
	must(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	must(t, err)
	must(t, unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(width)}))
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	must(t, err)
	cmd.Env = append(cmd.Env, "TERM=xterm")
	cmd.Stdout, cmd.Stderr = terminal, terminal
	must(t, cmd.Start())
	must(t, terminal.Close())
	var out bytes.Buffer
	// When the last process closes its side, the read fails.
	if _, err := io.Copy(&out, master); err != nil && !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return out.String()
}

// TestTerminalStops: a signal has an answer on a terminal at once.
func TestTerminalStops(t *testing.T) {
	skipLong(t)
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	run := command(t, small(photographs(t, "chelsea"), "--task", "motion_deblur", "--steps", "900", "-o", out)...)
	script := `"$@" & p=$!; until [ -e "$0" ]; do sleep 0.1; done; kill -TERM $p; wait $p; true`
	run.Path, run.Args = "/bin/sh", append([]string{"/bin/sh", "-c", script, filepath.Join(out, ".ddiff", "lock"), run.Path}, run.Args[1:]...)
	text := onTerminal(t, run, 80)
	stopping, ended := strings.Index(text, "stopping; Ctrl-C again ends at once"), strings.Index(text, "interrupted; rerun the same command to resume")
	if stopping < 0 || ended < stopping {
		t.Errorf("%q", text)
	}
}

// escapes are the control sequences of colours and of a cleared line.
var escapes = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`)

// TestTerminal runs the program on terminals: the status line fits, and colours appear unless NO_COLOR is set.
func TestTerminal(t *testing.T) {
	skipLong(t)
	t.Parallel()
	const width = 45
	dir := photographs(t, "chelsea", "coffee")
	run := func(steps string, env ...string) string {
		cmd := command(t, small(dir, "--task", "motion_deblur", "--steps", steps, "-o", filepath.Join(t.TempDir(), "out"))...)
		cmd.Env = append(cmd.Env, env...)
		return onTerminal(t, cmd, width)
	}
	text := run("60")
	updates := strings.Split(text, "\r\x1b[K")
	if len(updates) < 3 {
		t.Fatalf("the status line has %d updates:\n%q", len(updates), text)
	}
	for _, u := range updates[1:] {
		line, _, _ := strings.Cut(u, "\r\n")
		if said := escapes.ReplaceAllString(line, ""); strings.HasPrefix(said, "warning: ") || strings.HasPrefix(said, "report: ") {
			continue // it stays, and may wrap
		}
		if n := utf8.RuneCountInString(escapes.ReplaceAllString(line, "")); n >= width {
			t.Errorf("an update of %d columns on a terminal of %d: %q", n, width, line)
		}
	}
	if !strings.Contains(text, "2/2 images") {
		t.Errorf("the last status is missing:\n%q", text)
	}

	help := func(env ...string) string {
		cmd := command(t, "--help")
		cmd.Env = append(cmd.Env, env...)
		return onTerminal(t, cmd, width)
	}
	if text := help(); !strings.Contains(text, "\x1b[1mUsage:\x1b[0m") {
		t.Errorf("the help has no bold heading:\n%q", text)
	}
	if text := help("NO_COLOR=1"); strings.Contains(text, "\x1b[") {
		t.Errorf("NO_COLOR leaves colours:\n%q", text)
	}
	if text := run("5", "NO_COLOR=1"); regexp.MustCompile(`\x1b\[[0-9;]*m`).MatchString(text) {
		t.Errorf("NO_COLOR leaves colours:\n%q", text)
	}
}
