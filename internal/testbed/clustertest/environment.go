package clustertest

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"ddiff/restore/onnx/install"
)

// library finds ONNX Runtime where this process would.
var library = sync.OnceValues(func() (install.Library, error) { return install.Locate(install.LocateOptions{}) })

// Environment is the environment of this process without what would change the programs' ways.
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

// RuntimeVariable is the environment variable by which a program finds ONNX Runtime whatever
// its cache directory is.
func RuntimeVariable() (string, error) {
	lib, err := library()
	if err != nil {
		return "", fmt.Errorf("find ONNX Runtime: %w", err)
	}
	return install.EnvVar + "=" + lib.Path, nil
}
