package s3test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Version is the version of versitygw that Binary builds.
const Version = "v1.8.0"

const (
	programName   = "versitygw"
	programModule = "github.com/versity/versitygw/cmd/versitygw@" + Version
)

// Binary returns the path of versitygw: on PATH, or in the user's cache directory, where it builds the program on first
// use within a minute or two.
func Binary(ctx context.Context) (string, error) {
	if path, err := exec.LookPath(programName); err == nil {
		return path, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", programName, err)
	}
	return BuildOnce(filepath.Join(cache, "ddiff", programName+"-"+Version), programName, func(partial string) error {
		dir := filepath.Dir(partial)
		install := exec.CommandContext(ctx, "go", "install", programModule)
		install.Dir = dir // outside of this module
		install.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=")
		if output, err := install.CombinedOutput(); err != nil {
			return fmt.Errorf("go install %s: %w\n%s", programModule, err, output)
		}
		return nil
	})
}

// BuildOnce returns the path dir/name of a program. It calls build, which writes the program to the path partial,
// unless the program exists: one of several processes builds, and the others wait.
func BuildOnce(dir, name string, build func(partial string) error) (string, error) {
	// A killed build must not leave a partial program under the final name.
	path, partial := filepath.Join(dir, name), filepath.Join(dir, "building", name)
	if err := os.MkdirAll(filepath.Dir(partial), 0o755); err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	defer lock.Close() // empty
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("build %s: lock %s: %w", name, dir, err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	if err := build(partial); err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	return path, os.Rename(partial, path)
}
