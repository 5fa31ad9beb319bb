package regular_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/regular"
)

// Replace leaves no temporary file, also when it fails, and New replaces nothing.
func TestReplace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, strings.Repeat("a", 255)) // the longest name
	for _, text := range []string{"old", "new"} {
		if err := regular.Replace(file, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(file); err != nil || string(data) != text {
			t.Errorf("read %q, %v; want %q", data, err, text)
		}
	}
	if err := regular.New(file, []byte("newer"), 0o640); !errors.Is(err, fs.ErrExist) {
		t.Errorf("New in place of a file: %v", err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "new" {
		t.Errorf("read %q, %v", data, err)
	}
	if err := regular.Replace(dir, nil, 0o600); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if err := regular.MakeFolder(filepath.Join(file, "folder")); err == nil || errors.Is(err, fs.ErrExist) {
		t.Errorf("a folder in a file: %v", err)
	}
	for _, pattern := range []string{filepath.Join(dir, ".?*"), filepath.Join(filepath.Dir(dir), ".?*")} {
		if left, err := filepath.Glob(pattern); err != nil || len(left) != 0 {
			t.Errorf("temporary files: %v, %v", left, err)
		}
	}
}

// TestAttackSynced records the system calls of the writers with strace. A loss of power takes nothing that was written: a file is on the disk before it
// gets its name, and so is its folder's entry before the writer returns.
func TestAttackSynced(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("DDIFF_SYNC_FOLDER"); dir != "" {
		writeAll(t, dir)
		return
	}
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is missing: run make attacks")
	}
	dir := t.TempDir()
	log, root := filepath.Join(dir, "calls"), filepath.Join(dir, "files")
	cmd := exec.CommandContext(t.Context(), "strace", "-f", "-qq", "-y", "-s", "300", "-e", "signal=none", "-o", log,
		"-e", "trace=mkdirat,fsync,renameat,renameat2,linkat", os.Args[0], "-test.run", "^TestAttackSynced$")
	cmd.Env = append(os.Environ(), "DDIFF_SYNC_FOLDER="+root)
	if out, err := cmd.CombinedOutput(); bytes.Contains(out, []byte("ptrace")) {
		t.Skipf("no process can be traced here: %s", out)
	} else if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var synced []string // in this order
	named := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if m := regexp.MustCompile(`fsync\(\d+<([^>]*)>`).FindStringSubmatch(line); m != nil {
			synced = append(synced, m[1])
		}
		m := regexp.MustCompile(`(mkdirat|renameat2?|linkat)\(.*"([^"]*)"(, 0[0-7]*|, 0)?\) = 0`).FindStringSubmatch(line)
		if len(m) < 3 || !strings.HasPrefix(m[2], root) {
			continue
		}
		named[m[2]] = len(synced)
		if from := regexp.MustCompile(`"([^"]*)"`).FindStringSubmatch(line)[1]; m[1] != "mkdirat" && !slices.Contains(synced, from) {
			t.Errorf("%s gets its name before it is on the disk", m[2])
		}
	}
	if len(named) != 8 || !slices.Contains(synced, filepath.Join(root, "staged", "c", "file")) {
		t.Fatalf("%v, of\n%s", named, text)
	}
	for path, at := range named {
		if !slices.Contains(synced[at:], filepath.Dir(path)) {
			t.Errorf("the name of %s is not on the disk", path)
		}
	}
}

// writeAll calls all writers.
func writeAll(t *testing.T, dir string) {
	t.Helper()
	data, staged := []byte("data"), filepath.Join(dir, "staged")
	err := errors.Join(
		regular.MakeFolder(filepath.Join(dir, "a", "b")),
		regular.New(filepath.Join(dir, "a", "new"), data, 0o600),
		regular.Replace(filepath.Join(dir, "a", "b", "replaced"), data, 0o600),
		os.Mkdir(staged, 0o755),
		os.Mkdir(filepath.Join(staged, "c"), 0o755),
		os.WriteFile(filepath.Join(staged, "c", "file"), data, 0o600),
		regular.MoveFolder(staged, filepath.Join(dir, "moved")),
	)
	if err != nil {
		t.Fatal(err)
	}
}
