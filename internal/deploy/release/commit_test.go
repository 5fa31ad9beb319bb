package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// git runs git in dir with an author of its own.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=Test", "-c", "user.email=test@example.org"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// A release needs a checkout without changes, and one tag or a version that does not contradict it.
func TestCommitOfRelease(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	wantVersion := func(given, want, refusal string) {
		t.Helper()
		c, err := readCommit(t.Context(), dir)
		version := ""
		if err == nil {
			version, err = c.version(given)
		}
		if refusal == "" && (err != nil || version != want) {
			t.Errorf("VERSION=%q: %q, %v; want %q", given, version, err, want)
		}
		if refusal != "" && (err == nil || !strings.Contains(err.Error(), refusal)) {
			t.Errorf("VERSION=%q: %q, %v; want the error %q", given, version, err, refusal)
		}
	}
	git(t, dir, "init", "--quiet")
	write("1")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "--quiet", "--message", "one", "--date", "2026-01-02T03:04:05Z")
	wantVersion("", "", "VERSION=1.2.3-rc1")
	wantVersion("1.2.3-rc1", "1.2.3-rc1", "")
	wantVersion("next", "", "VERSION=next is no version")
	wantVersion("1.2.3; rm", "", "is no version")
	git(t, dir, "tag", "v1.2")
	git(t, dir, "tag", "other")
	wantVersion("", "", "no tag")
	git(t, dir, "tag", "v1.2.3")
	wantVersion("", "1.2.3", "")
	wantVersion("1.2.3", "1.2.3", "")
	wantVersion("1.2.4", "", "has the tag v1.2.3, VERSION is 1.2.4")
	git(t, dir, "tag", "v2.0.0")
	wantVersion("", "", "has the tags v1.2.3 and v2.0.0")
	git(t, dir, "tag", "--delete", "v2.0.0")
	write("2")
	wantVersion("", "", "the checkout has changes")
	git(t, dir, "checkout", "--quiet", "file")
	if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	wantVersion("", "", "the checkout has changes (?? new)")
}

// The bytes of an archive depend on names, contents and executable bits, and on nothing else of the files.
func TestArchiveBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	build := func(umask os.FileMode, modified time.Time, program os.FileMode, names ...string) string {
		t.Helper()
		tree := filepath.Join(t.TempDir(), "tree")
		for _, name := range names {
			file := filepath.Join(tree, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o777&^umask); err != nil {
				t.Fatal(err)
			}
			mode := 0o666 &^ umask
			if name == "bin/program" {
				mode = program
			}
			if err := os.WriteFile(file, []byte("content of "+name), mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(file, modified, modified); err != nil {
				t.Fatal(err)
			}
		}
		archive := filepath.Join(dir, "archive.tar.gz")
		if err := writeArchive(archive, tree, "stem", time.Unix(1_700_000_000, 0)); err != nil {
			t.Fatal(err)
		}
		sum, err := digest(archive)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	first := build(0o022, time.Unix(1, 0), 0o755, "bin/program", "share/a", "share/b")
	if again := build(0o077, time.Unix(2_000_000_000, 0), 0o700, "share/b", "share/a", "bin/program"); again != first {
		t.Errorf("%s and %s", first, again)
	}
	if other := build(0o022, time.Unix(1, 0), 0o644, "bin/program", "share/a", "share/b"); other == first {
		t.Error("the executable bit does not count")
	}
	tree := t.TempDir()
	if err := os.Symlink("nowhere", filepath.Join(tree, "link")); err != nil {
		t.Fatal(err)
	}
	if err := writeArchive(filepath.Join(dir, "link.tar.gz"), tree, "stem", time.Unix(1, 0)); err == nil || !strings.Contains(err.Error(), "link is no file") {
		t.Errorf("a link: %v", err)
	}
}
