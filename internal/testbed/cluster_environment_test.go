package testbed

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"ddiff/internal/restore/onnx/install"
)

// library locates ONNX Runtime as this process would.
var library = sync.OnceValues(func() (install.Library, error) { return install.Locate(install.LocateOptions{}) })

// Environment returns the environment of this process without the variables that configure programs.
func Environment() []string {
	var env []string
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		switch {
		case strings.HasPrefix(name, "OTEL_"), strings.HasPrefix(name, "DDIFF_"), strings.HasPrefix(name, "AWS_"),
			strings.HasPrefix(name, "MINIO_"), strings.HasPrefix(name, "NATS_"):
		default:
			env = append(env, e)
		}
	}
	return env
}

// RuntimeVariable returns the environment variable that names ONNX Runtime independently of the cache directory.
func RuntimeVariable() (string, error) {
	lib, err := library()
	if err != nil {
		return "", fmt.Errorf("find ONNX Runtime: %w", err)
	}
	return install.EnvVar + "=" + lib.Path, nil
}
