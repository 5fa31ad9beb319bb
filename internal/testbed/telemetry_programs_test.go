package testbed

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"ddiff/internal/s3test"
)

// prometheusModule is the module of Prometheus; internal/telemetrytest names its version.
const prometheusModule = "github.com/prometheus/prometheus"

// collectorBinary builds the OpenTelemetry Collector of internal/telemetrytest into dir.
func collectorBinary(ctx context.Context, dir string) (string, error) {
	root, err := ModuleRoot(ctx)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "otelcol")
	if _, err := goTool(ctx, filepath.Join(root, "internal", "telemetrytest"), "build", "-o", path, "./collector"); err != nil {
		return "", fmt.Errorf("build the collector: %w", err)
	}
	return path, nil
}

// prometheusBinaries returns the paths of prometheus and promtool. The first call builds them into the user's cache directory, in the
// module of Prometheus, with the modules that it names.
func prometheusBinaries(ctx context.Context) (server, promtool string, err error) {
	root, err := ModuleRoot(ctx)
	if err != nil {
		return "", "", err
	}
	version, err := goTool(ctx, filepath.Join(root, "internal", "telemetrytest"), "list", "-m", "-f", "{{.Version}}", prometheusModule)
	if err != nil {
		return "", "", fmt.Errorf("find prometheus: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", "", fmt.Errorf("find prometheus: %w", err)
	}
	build := func(name string) (string, error) {
		return s3test.BuildOnce(filepath.Join(cache, "ddiff", "prometheus-"+version), name, func(partial string) error {
			out, err := goTool(ctx, root, "mod", "download", "-json", prometheusModule+"@"+version)
			if err != nil {
				return err
			}
			var module struct{ Dir string }
			if err := json.Unmarshal([]byte(out), &module); err != nil {
				return err
			}
			// The test needs no service discovery.
			cmd := exec.CommandContext(ctx, "go", "build", "-tags", "remove_all_sd", "-o", partial, "./cmd/"+name)
			cmd.Dir = module.Dir
			// The workspace file of Prometheus names folders that the module lacks.
			cmd.Env = append(os.Environ(), "GOWORK=off")
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("go build: %w: %s", err, out)
			}
			return nil
		})
	}
	if server, err = build("prometheus"); err != nil {
		return "", "", err
	}
	promtool, err = build("promtool")
	return server, promtool, err
}

// poll calls done until it reports true, for at most limit.
func poll(ctx context.Context, limit time.Duration, subject string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		var ok bool
		if ok, last = done(); ok && last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait %v for %s: %w (last error: %v)", limit, subject, ctx.Err(), last) //nolint:errorlint // last may be nil
		case <-tick.C:
		}
	}
}
