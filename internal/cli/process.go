package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"ddiff/telemetry"
)

// ProcessFlags are the flags for logs and traces.
type ProcessFlags struct {
	traceFile string
	LogLevel  string
	logFormat string
	// Prometheus provides metrics to telemetry.Telemetry.Metrics. It is no flag.
	Prometheus bool
}

// Add registers the flags. Level is the default of --log-level.
func (p *ProcessFlags) Add(f *pflag.FlagSet, level string) {
	p.AddLog(f, level)
	f.StringVar(&p.traceFile, "trace-file", "", "append OpenTelemetry spans to this `file`, as OTLP/JSON lines")
}

// AddLog registers the flags of a command that has no spans, see Logger.
func (p *ProcessFlags) AddLog(f *pflag.FlagSet, level string) {
	f.StringVar(&p.LogLevel, "log-level", level, "`level` of the log on standard error: debug, info, warn, error or off")
	f.StringVar(&p.logFormat, "log-format", string(telemetry.LogText), "`format` of the log: text or json")
}

// Service is the name of ddiff in telemetry; the processes of a cluster append their role.
const Service = "ddiff"

// Logger returns the log of a command without traces and metrics.
func (p ProcessFlags) Logger(stderr io.Writer) (*slog.Logger, error) {
	cfg, err := p.log(stderr)
	return telemetry.NewLogger(cfg), err
}

// log returns the configuration of telemetry that has the log alone.
func (p ProcessFlags) log(stderr io.Writer) (cfg telemetry.Config, err error) {
	cfg.LogOutput, cfg.LogFormat = stderr, telemetry.LogFormat(p.logFormat)
	if cfg.LogLevel, err = parseLevel(p.LogLevel); err != nil {
		return cfg, err
	}
	if err := cfg.Validate(); err != nil {
		return cfg, Usage(fmt.Errorf("--log-format: %q is none of %s, %s", p.logFormat, telemetry.LogText, telemetry.LogJSON))
	}
	return cfg, nil
}

// Telemetry starts traces, metrics and logs. Stop flushes and ends them.
func (p ProcessFlags) Telemetry(ctx context.Context, name string, stderr io.Writer) (tel *telemetry.Telemetry, stop func(), err error) {
	cfg, err := p.log(stderr)
	if err != nil {
		return nil, nil, err
	}
	cfg.Service, cfg.Version, cfg.TraceFile, cfg.Prometheus = name, Version(), p.traceFile, p.Prometheus
	ignored := strings.Join(telemetry.IgnoredVariables(os.Environ()), "; ")
	asJSON := cfg.LogFormat == telemetry.LogJSON
	if ignored != "" && !asJSON {
		fmt.Fprintf(stderr, "ddiff: ignored variables of the environment: %s\n", ignored)
	}
	if tel, err = telemetry.Start(ctx, cfg); err != nil {
		return nil, nil, Usage(fmt.Errorf("start telemetry: %w", err))
	}
	if ignored != "" && asJSON {
		tel.Logger.Warn("ignored variables of the environment", "variables", ignored)
	}
	return tel, func() {
		flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		switch err := tel.Shutdown(flush); {
		case err != nil && asJSON:
			tel.Logger.Warn("telemetry", "reason", err)
		case err != nil:
			fmt.Fprintln(stderr, "ddiff: telemetry:", err)
		}
	}, nil
}

// parseLevel parses the value of --log-level.
func parseLevel(text string) (slog.Level, error) {
	if text == "off" {
		return slog.Level(100), nil
	}
	var l slog.Level
	if err := l.UnmarshalText([]byte(text)); err != nil {
		return 0, Usage(fmt.Errorf("--log-level: %q is none of debug, info, warn, error, off", text))
	}
	return l, nil
}

// UserCache returns the program's cache directory. Without a user cache directory it is among the temporary files.
func UserCache(log *slog.Logger) string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
		log.Warn("no user cache directory, using a temporary directory", "directory", dir, "reason", err)
	}
	return filepath.Join(dir, "ddiff")
}
