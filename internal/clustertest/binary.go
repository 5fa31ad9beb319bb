package clustertest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

const natsModule = "github.com/nats-io/nats-server/v2"

// NATSBinary is the path of a nats-server program, of the version that is in go.mod. It is
// built into the user's cache directory the first time. The working directory must lie in the
// module.
func NATSBinary(ctx context.Context) (string, error) {
	version, err := goTool(ctx, "list", "-m", "-f", "{{.Version}}", natsModule)
	if err != nil {
		return "", fmt.Errorf("find nats-server: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find nats-server: %w", err)
	}
	dir := filepath.Join(cache, "ddiff", "nats-server-"+version)
	path := filepath.Join(dir, "nats-server")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("build nats-server: %w", err)
	}
	// Of several processes one builds and the others wait.
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return "", fmt.Errorf("build nats-server: %w", err)
	}
	defer lock.Close() // it stays empty
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("build nats-server: lock %s: %w", dir, err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	// A build that is killed must not leave half a program under the final name.
	partial := filepath.Join(dir, "partial")
	if _, err := goTool(ctx, "build", "-o", partial, natsModule); err != nil {
		return "", fmt.Errorf("build nats-server: %w", err)
	}
	return path, os.Rename(partial, path)
}

// BuildProgram builds ddiff into dir and returns its path. The working directory must lie in
// the module.
func BuildProgram(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "ddiff")
	if _, err := goTool(ctx, "build", "-o", path, "ddiff/cmd/ddiff"); err != nil {
		return "", fmt.Errorf("build ddiff: %w", err)
	}
	return path, nil
}

// ModuleRoot is the directory of the module that the working directory lies in.
func ModuleRoot(ctx context.Context) (string, error) {
	return goTool(ctx, "list", "-m", "-f", "{{.Dir}}")
}

func goTool(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}
