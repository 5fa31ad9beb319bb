package testbed

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"ddiff/internal/s3test"
)

const natsModule = "github.com/nats-io/nats-server/v2"

// NATSBinary returns the path of a nats-server program, in the version that the product's go.mod names. The first call
// builds it into the user's cache directory. The working directory must lie in this module.
func NATSBinary(ctx context.Context) (string, error) {
	root, err := ModuleRoot(ctx)
	if err != nil {
		return "", fmt.Errorf("find nats-server: %w", err)
	}
	version, err := goTool(ctx, root, "list", "-m", "-f", "{{.Version}}", natsModule)
	if err != nil {
		return "", fmt.Errorf("find nats-server: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find nats-server: %w", err)
	}
	return s3test.BuildOnce(filepath.Join(cache, "ddiff", "nats-server-"+version), "nats-server", func(partial string) error {
		_, err := goTool(ctx, root, "build", "-o", partial, natsModule)
		return err
	})
}

// BuildProgram builds ddiff into dir and returns its path. The working directory must lie in this module.
func BuildProgram(ctx context.Context, dir string) (string, error) {
	root, err := ModuleRoot(ctx)
	if err != nil {
		return "", fmt.Errorf("build ddiff: %w", err)
	}
	path := filepath.Join(dir, "ddiff")
	if _, err := goTool(ctx, root, "build", "-o", path, "./cmd/ddiff"); err != nil {
		return "", fmt.Errorf("build ddiff: %w", err)
	}
	return path, nil
}

// ModuleRoot returns the directory of the product's module. The working directory must lie in this module.
func ModuleRoot(ctx context.Context) (string, error) {
	return goTool(ctx, "", "list", "-m", "-f", "{{.Dir}}", "ddiff")
}

// goTool runs the go command in a directory and returns its output.
func goTool(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}
