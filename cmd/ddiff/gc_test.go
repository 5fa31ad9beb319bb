package main_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestGC deletes the scratch files of a killed run and the checkpoint of a restored item, and leaves a live run alone.
func TestGC(t *testing.T) {
	t.Parallel()
	dir, out, own := photographs(t, "chelsea"), filepath.Join(t.TempDir(), "out"), t.TempDir()
	env := []string{"XDG_CACHE_HOME=" + own, "TMPDIR=" + t.TempDir()}
	args := func(out string) []string {
		return []string{"--images", dir, "--task", "super_resolution", "--steps", "60", "--batch", "1", "--out", out}
	}
	with := func(cmd *exec.Cmd) *exec.Cmd {
		cmd.Env = append(cmd.Env, env...)
		return cmd
	}
	gc := func(more ...string) ended {
		t.Helper()
		return end(t, with(command(t, append([]string{"gc"}, more...)...)))
	}
	p := beginWith(t, env, args(out)...)
	p.wait(t, &p.stderr, "opened ONNX Runtime", 1)
	e := gc("--yes")
	wantCode(t, e, 0)
	if want := "objects=0 bytes=0 deleted=yes\n"; e.stdout != want {
		t.Errorf("beside a live run: %v", e)
	}
	wantCode(t, gc(out, "--yes"), 5)
	p.signal(t, syscall.SIGKILL)
	p.end()

	e = gc()
	wantCode(t, e, 0)
	if !strings.Contains(e.stdout, "scratch") || !strings.Contains(e.stdout, "deleted=no") || len(files(t, own)) == 0 {
		t.Errorf("a dry run: %v", e)
	}
	wantMessage(t, e, "nothing was deleted")
	wantCode(t, gc("--yes"), 0)
	if left := files(t, own); len(left) > 0 {
		t.Errorf("left: %v", left)
	}

	wantCode(t, end(t, with(command(t, small(args(out)...)...))), 0)
	for id := range items(t, out) {
		for _, name := range []string{id, strings.Repeat("0", 64)} {
			path := filepath.Join(out, "checkpoints", name)
			must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			write(t, path, []byte("state"))
			old := time.Now().Add(-2 * time.Hour)
			must(t, os.Chtimes(path, old, old))
		}
	}
	e = gc(out, "--yes", "--json")
	wantCode(t, e, 0)
	if !strings.Contains(e.stdout, `"objects":1`) || !strings.Contains(e.stdout, `"kind":"checkpoints"`) {
		t.Errorf("%v", e)
	}
	left, err := filepath.Glob(filepath.Join(out, "checkpoints", "*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != strings.Repeat("0", 64) {
		t.Errorf("checkpoints %v, %v", left, err)
	}
	wantItems(t, out, 1)
}

func TestGCUsage(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"--keep needs the store":       {"gc", "--keep", "90d"},
		"is not a positive time":       {"gc", "--keep", "-1d"},
		"--results needs --keep":       {"gc", "--results"},
		"no such directory":            {"gc", "/nowhere/at/all"},
		"--yes and --dry-run exclude":  {"delete", "night-12345678", "--yes", "--dry-run"},
		"has no index":                 {"gc", "--store", t.TempDir()},
		"--archive-after: 0s is below": {"coordinator", "--store", t.TempDir(), "--archive-after", "0s"},
		"--ack-wait: 1ms is below 1s":  {"coordinator", "--store", t.TempDir(), "--ack-wait", "1ms"},
		"--stall: -1s is below":        {"coordinator", "--store", t.TempDir(), "--stall", "-1s"},
		"--price: spot=-1 is outside":  {"coordinator", "--store", t.TempDir(), "--price", "spot=-1"},
		"is no amount, or repeats one": {"coordinator", "--store", t.TempDir(), "--price", "1/h,2"},
		"is no name of a pool":         {"coordinator", "--store", t.TempDir(), "--price", "A 100=2"},
		"--cap: a cap has no owner":    {"coordinator", "--store", t.TempDir(), "--price", "1", "--cap", "20"},
		"a cap is a cost in a month":   {"coordinator", "--store", t.TempDir(), "--price", "1", "--cap", "ann=20/h"},
		"a cap of cost needs prices":   {"coordinator", "--store", t.TempDir(), "--cap", "ann=20"},
	} {
		e := ddiff(t, args...)
		wantCode(t, e, 2)
		wantMessage(t, e, want)
	}
}

// TestAttackGC: gc deletes, locks and changes no folder of another user or name, and follows no link.
func TestAttackGC(t *testing.T) {
	t.Parallel()
	cache, temp, home := t.TempDir(), t.TempDir(), t.TempDir()
	victim := filepath.Join(home, "precious")
	write(t, victim, []byte("text"))
	queues := filepath.Join(cache, "ddiff", "queue")
	scratch := func(dir string) string {
		must(t, os.MkdirAll(filepath.Join(dir, ".ddiff"), 0o755))
		write(t, filepath.Join(dir, ".ddiff", "lock"), nil)
		write(t, filepath.Join(dir, "file"), []byte("text"))
		return dir
	}
	ours := []string{scratch(filepath.Join(temp, "ddiff-queue-1")), scratch(filepath.Join(queues, "0123456789ab")), scratch(filepath.Join(queues, "0123456789ab-7"))}
	scratch(filepath.Join(temp, "ddiff-queue-notes"))
	scratch(filepath.Join(queues, "notes"))
	must(t, os.Chmod(scratch(filepath.Join(temp, "ddiff-queue-2")), 0o777))
	must(t, os.Symlink(scratch(filepath.Join(home, "folder")), filepath.Join(temp, "ddiff-queue-3")))
	if os.Geteuid() == 0 {
		must(t, os.Lchown(scratch(filepath.Join(temp, "ddiff-queue-4")), 12345, 12345))
	}
	linked := scratch(filepath.Join(temp, "ddiff-queue-5"))
	must(t, os.Remove(filepath.Join(linked, ".ddiff", "lock")))
	must(t, os.Symlink(victim, filepath.Join(linked, ".ddiff", "lock")))
	run := func(args ...string) {
		t.Helper()
		cmd := command(t, append([]string{"gc"}, args...)...)
		cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+cache, "TMPDIR="+temp)
		wantCode(t, end(t, cmd), 0)
	}
	all := func() []string { return slices.Concat(files(t, cache), files(t, temp), files(t, home)) }
	before := all()
	run("--dry-run")
	if after := all(); !slices.Equal(after, before) {
		t.Errorf("a dry run changes %q to %q", before, after)
	}
	run("--yes")
	for _, dir := range ours {
		before = slices.DeleteFunc(before, func(path string) bool { return strings.Contains(path, filepath.Base(dir)+"/") })
	}
	if after := all(); !slices.Equal(after, before) {
		t.Errorf("gc leaves %q, want %q", after, before)
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "text" {
		t.Errorf("the file behind a link has %q, %v", text, err)
	}
}

// TestNestedOutput: an output inside a folder of another one is not read as part of it, and gc deletes nothing of it.
func TestNestedOutput(t *testing.T) {
	t.Parallel()
	dir := photographs(t, "chelsea")
	out := tiny(t, "--images", dir, "--task", "hdr", "--steps", "4")
	inner := tiny(t, "--images", dir, "--task", "super_resolution", "--steps", "4")
	wantCode(t, ddiff(t, "score", inner, "--metric", "haarpsi"), 0)
	must(t, os.MkdirAll(filepath.Join(inner, "failures", "night-12345678"), 0o755))
	write(t, filepath.Join(inner, "failures", "night-12345678", "000000.jsonl"), []byte("damaged\n"))
	table := ddiff(t, "report", out).stdout
	for _, folder := range []string{"checkpoints", "probes", "tuning", "scores", "failures", "logs", "figures", "sheets"} {
		must(t, os.CopyFS(filepath.Join(out, folder, "inner"), os.DirFS(inner)))
	}
	before := files(t, out)
	old := time.Now().Add(-48 * time.Hour)
	must(t, filepath.WalkDir(out, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(filepath.Dir(path)) == "restored" {
			return err // links
		}
		return os.Chtimes(path, old, old)
	}))
	cmd := command(t, "gc", out, "--yes")
	cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+t.TempDir(), "TMPDIR="+t.TempDir())
	e := end(t, cmd)
	wantCode(t, e, 0)
	if want := "objects=0 bytes=0 deleted=yes\n"; e.stdout != want {
		t.Errorf("gc: %v", e)
	}
	if after := files(t, out); !slices.Equal(after, before) {
		t.Errorf("gc changes %q to %q", before, after)
	}
	e = ddiff(t, "report", out)
	wantCode(t, e, 0)
	if e.stdout != table {
		t.Errorf("the table changes from\n%s\nto\n%s", table, e.stdout)
	}
	wantCode(t, ddiff(t, "verify", out), 0)
}
