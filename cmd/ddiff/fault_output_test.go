package main_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// mount mounts a file system in memory at a new directory.
func mount(t *testing.T, flags uintptr, options string) string {
	t.Helper()
	dir := t.TempDir()
	err := syscall.Mount("tmpfs", dir, "tmpfs", flags, options)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		t.Skip("only root may mount a file system here")
	}
	must(t, err)
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

// TestForeignFiles writes outputs to a folder that has files with the names of a report: they are not replaced.
func TestForeignFiles(t *testing.T) {
	skipLong(t)
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	run := []string{"run", photograph("chelsea"), "--task", "hdr", "--size", "32", "--steps", "2", "--out"}
	wantCode(t, ddiff(t, append(run, out)...), 0)
	site := t.TempDir()
	must(t, os.WriteFile(filepath.Join(site, "index.html"), []byte("mine"), 0o644))
	wantCode(t, ddiff(t, "report", out, "--format", "figures", "--out", site), 0) // which do not make it an output
	wantRefusals(t, nil, []refusal{{[]string{"report", out, "--format", "html", "--out", site}, 2, "is no output of ddiff, and has a file index.html"}})
	for _, command := range [][]string{run, {"pull", out}, {"report", out, "--format", "html", "--out"}} {
		for _, name := range []string{"index.html", "results.csv"} {
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, name), []byte("mine"), 0o644))
			wantRefusals(t, nil, []refusal{{append(command, dir), 2, "is no output of ddiff, and has a file " + name}})
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || string(read(t, filepath.Join(dir, name))) != "mine" {
				t.Errorf("%s: %v, error %v", command[0], entries, err)
			}
		}
		other := t.TempDir()
		must(t, os.WriteFile(filepath.Join(other, "notes.txt"), []byte("mine"), 0o644))
		for range 2 { // the second output replaces the first
			wantCode(t, ddiff(t, append(command, other)...), 0)
		}
	}
}

// TestOutputAmongImages: the pictures of an output below the images, or in their folder, are no images of the next run.
func TestOutputAmongImages(t *testing.T) {
	skipLong(t)
	t.Parallel()
	dir := photographs(t, "chelsea")
	out := filepath.Join(dir, "out")
	campaign := filepath.Join(t.TempDir(), "c.yaml")
	must(t, os.WriteFile(campaign, fmt.Appendf(nil, "dataset: {path: %s, size: 32, recursive: true}\ntasks: [hdr]\nsteps: 2\n", dir), 0o644))
	restored := quick(dir, "--recursive", "--unchecked", "--results", filepath.Join(dir, "restored"), "--out", t.TempDir())
	for run, want := range []string{"done=1 failed=0 dead=0 skipped=0", "done=0 failed=0 dead=0 skipped=1"} {
		wantLine(t, ddiff(t, "run", campaign, "--out", out), "done=1 failed=0 dead=0 out="+out)
		e := ddiff(t, restored...)
		if wantLine(t, e, want); t.Failed() {
			t.Fatalf("run %d", run)
		}
	}
	small := []string{"--task", "hdr", "--size", "32", "--steps", "2", "--out", dir}
	picture := filepath.Join(dir, "chelsea.png")
	for range 2 {
		wantLine(t, ddiff(t, append([]string{"run", dir}, small...)...), "done=1 failed=0 dead=0 out="+dir)
		wantLine(t, ddiff(t, append([]string{"run", dir + "/*.png"}, small...)...), "done=1 failed=0 dead=0 out="+dir)
	}
	for _, args := range [][]string{{dir}, {picture, filepath.Join(dir, "mosaic.png")}} {
		wantLine(t, ddiff(t, quick(append(args, "--unchecked", "--results", dir, "--out", t.TempDir())...)...), "done=1 failed=0 dead=0 skipped=0")
	}
}

// unfinished is the last line of a run with pending items.
var unfinished = regexp.MustCompile(`(?m)^done=(\d+) failed=(\d+) dead=(\d+) pending=(\d+) out=(.+)\n\z`)

// TestFullDisk writes to a disk with space for some of the results. Its batches are of one item: the items of a batch are
// written at the same time, and each may take a part of the space that only one of them has.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		size        string
		done        int // at least
		code, items int
	}{{"60k", 1, 6, 3}, {"8k", 0, 6, 3}} {
		t.Run(c.size, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(mount(t, 0, "size="+c.size), "out")
			e := restore(t, "--images", photographs(t, "chelsea", "coffee", "rocket"), "--task", "super_resolution", "--steps", "10", "--batch", "1", "--out", out)
			wantCode(t, e, c.code)
			n := unfinished.FindStringSubmatch(e.stdout)
			if n == nil {
				t.Fatalf("no counts\n%v", e)
			}
			done, failed, dead, pending := atoi(t, n[1]), atoi(t, n[2]), atoi(t, n[3]), atoi(t, n[4])
			if done < c.done || failed != 0 || dead != 0 || pending < 1 || done+pending != c.items {
				t.Errorf("done=%d failed=%d dead=%d pending=%d of %d items", done, failed, dead, pending, c.items)
			}
			wantMessage(t, e, "ddiff: ", "no space left for the output", out)
			wantItems(t, out, done)
		})
	}
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	must(t, err)
	return n
}

// TestUnwritableOutput runs with outputs that cannot be written.
func TestUnwritableOutput(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		out     func(t *testing.T) string
		message string
	}{
		{"a file", func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "file")
			write(t, path, []byte("in the way"))
			return path
		}, "not a directory"},
		{"below a file", func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "file")
			write(t, path, []byte("in the way"))
			return filepath.Join(path, "out")
		}, "not a directory"},
		{"read-only disk", func(t *testing.T) string { return mount(t, syscall.MS_RDONLY, "size=64k") }, "read-only file system"},
		{"new directory on a read-only disk", func(t *testing.T) string {
			return filepath.Join(mount(t, syscall.MS_RDONLY, "size=64k"), "out")
		}, "read-only file system"},
		{"no space for the lock", func(t *testing.T) string { return mount(t, 0, "size=4k,nr_inodes=2") }, "no space left"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := c.out(t)
			e := restore(t, "--images", photograph("coffee"), "--task", "hdr", "--steps", "10", "--out", out)
			wantCode(t, e, 6)
			wantMessage(t, e, "ddiff: open output", out, c.message)
		})
	}
}

// asNobody runs ddiff run as an unprivileged user.
func asNobody(t *testing.T, args ...string) ended {
	t.Helper()
	return commandAsNobody(t, small(args...)...)
}

// commandAsNobody runs a command as an unprivileged user, which needs root.
func commandAsNobody(t *testing.T, args ...string) ended {
	t.Helper()
	cmd := command(t, args...)
	if os.Geteuid() != 0 {
		return end(t, cmd) // is such a user
	}
	lib, err := library()
	must(t, err)
	// The library may be in a home directory that other users cannot enter.
	copied := filepath.Join(open(t), filepath.Base(lib.Path))
	copyFile(t, lib.Path, copied)
	cmd.Env = append(environment(), "DDIFF_ONNXRUNTIME="+copied, "XDG_CACHE_HOME=", "HOME=/nonexistent")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	return end(t, cmd)
}

// open returns a new directory that every user may enter.
func open(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Chmod(filepath.Dir(dir), 0o755)) // the one above is for its owner alone
	return dir
}

// TestPermissions runs as a user who may not read one image and may not write one output.
func TestPermissions(t *testing.T) {
	skipLong(t)
	t.Parallel()
	dir, home := open(t), open(t)
	for i, mode := range []os.FileMode{0o644, 0o000} {
		path := filepath.Join(dir, fmt.Sprintf("image%d.png", i))
		copyFile(t, photograph("coffee"), path)
		must(t, os.Chmod(path, mode))
	}
	mine := filepath.Join(home, "mine")
	must(t, os.Mkdir(mine, 0o755))
	if os.Geteuid() == 0 {
		must(t, os.Chown(mine, 65534, 65534))
	}
	args := []string{"--images", dir, "--task", "hdr", "--steps", "10", "--out"}
	e := asNobody(t, append(args, filepath.Join(mine, "out"))...)
	wantCode(t, e, 3)
	wantCounts(t, e, 1, 1, 0, filepath.Join(mine, "out"))
	wantMessage(t, e, "failed: image1 (hdr): ", filepath.Join(dir, "image1.png"), "permission denied")

	theirs := filepath.Join(home, "theirs")
	must(t, os.Mkdir(theirs, 0o555))
	for _, out := range []string{theirs, filepath.Join(theirs, "out")} {
		e = asNobody(t, append(args, out)...)
		wantCode(t, e, 6)
		wantMessage(t, e, "ddiff: open output", out, "output is not writable", "permission denied")
	}
}

// TestUmask: what a user's umask denies, no file or folder that a command writes permits.
func TestUmask(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, out, report, export := filepath.Join(dir, "a.png"), filepath.Join(dir, "out"), filepath.Join(dir, "report.csv"), filepath.Join(dir, "export")
	write(t, a, grey(16))
	for _, args := range [][]string{quick(a, "--results", out), {"report", out, "--format", "csv", "--out", report}, {"export", out, "--out", export}} {
		cmd := command(t, args...)
		cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `umask 077; exec "$0" "$@"`, cmd.Path}, args...)
		wantCode(t, end(t, cmd), 0)
	}
	for _, path := range []string{filepath.Join(dir, "a.restored.png"), out, report, export} {
		info, err := os.Stat(path)
		if must(t, err); info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
	}
}

// TestTwoProcesses runs a second process on the output of a running one.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	dir, out := photographs(t, "chelsea", "coffee"), filepath.Join(t.TempDir(), "out")
	args := []string{"--images", dir, "--task", "hdr", "--steps", "100", "--batch", "1", "--out", out}
	first := begin(t, args...)
	first.wait(t, &first.stdout, steps, 1)
	e := restore(t, args...)
	wantCode(t, e, 5)
	wantMessage(t, e, "ddiff: open output "+out, "directory is in use", fmt.Sprintf("process %d", first.cmd.Process.Pid), "choose another directory")
	wantCode(t, first.end(), 0)
	wantItems(t, out, 2)
}

// TestFullDiskOfRestoredPictures restores more pictures than fit: those that fit are whole, the first other one ends the command with one line, and the same
// command resumes when there is space.
func TestFullDiskOfRestoredPictures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 6 {
		write(t, filepath.Join(dir, fmt.Sprintf("%d.png", i)), append(grey(32), byte(i)))
	}
	for name, more := range map[string][]string{"alone": nil, "runs": {"--runs", "2"}, "campaign": {"--results", filepath.Join(t.TempDir(), "results")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := mount(t, 0, "size=8k")
			args := append([]string{"restore", dir, "--task", "denoise", "--steps", "3", "--unchecked", "--batch", "1", "--quiet", "--out", out}, more...)
			e := ddiff(t, args...)
			wantCode(t, e, 6)
			wantMessage(t, e, "ddiff: ", ".png: write restored picture: ", "no space left on device; make space, and rerun the same command to resume")
			wantLine(t, e, "done=1 failed=0 dead=0 skipped=0")
			if n := strings.Count("\n"+e.stderr, "\nddiff: "); n != 1 { // beside warnings of the first
				t.Errorf("%d lines, want 1\n%v", n, e)
			}
			files, err := os.ReadDir(out)
			must(t, err)
			if len(files) != 1 {
				t.Errorf("the folder has %v, want one picture", files)
			}
			must(t, syscall.Mount("tmpfs", out, "tmpfs", syscall.MS_REMOUNT, "size=1m"))
			wantCode(t, ddiff(t, args...), 0)
		})
	}
}
