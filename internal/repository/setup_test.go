package repository

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// root is the path of the repository from the folder of the tests.
const root = "../.."

// run executes a program in the repository and returns its standard output.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = root
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, out, complaints.String())
	}
	return string(out)
}

// tracked returns the slash-separated paths of existing files that Git tracks and that match a
// pattern of git ls-files.
func tracked(t *testing.T, patterns ...string) []string {
	t.Helper()
	// In a container the clone may belong to another user.
	args := append([]string{"-c", "safe.directory=*", "ls-files", "-z", "--"}, patterns...)
	var files []string
	for name := range strings.SplitSeq(strings.TrimSuffix(run(t, "git", args...), "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
			files = append(files, name)
		}
	}
	if len(files) == 0 {
		t.Fatalf("Git tracks no file that matches %q", patterns)
	}
	return files
}

// read returns the contents of a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	must(t, err)
	return string(data)
}

// buildDir is the directory of the built program; TestMain creates and removes it.
var buildDir string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if buildDir, err = os.MkdirTemp("", "ddiff-repository-"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(buildDir) //nolint:errcheck // the system clears its temporary files
		return m.Run()
	}())
}

var build = sync.OnceValues(func() (string, error) {
	program := filepath.Join(buildDir, "ddiff")
	cmd := exec.Command("go", "build", "-o", program, "./cmd/ddiff")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build ddiff: %w\n%s", err, out)
	}
	return program, nil
})

// ddiff returns the path of the program, built once for all tests. With -short it skips the test.
func ddiff(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: the test builds the program")
	}
	program, err := build()
	must(t, err)
	return program
}

// must fails the test at an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
