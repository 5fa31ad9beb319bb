package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"ddiff/telemetry"
)

// processFlags are the flags for logs and traces.
type processFlags struct {
	traceFile string
	logLevel  string
	logFormat string
	// prometheus provides metrics to telemetry.Telemetry.Metrics. It is no flag.
	prometheus bool
}

func (p *processFlags) add(f *pflag.FlagSet, level string) {
	f.StringVar(&p.logLevel, "log-level", level, "`level` of the log on standard error: debug, info, warn, error or off")
	f.StringVar(&p.logFormat, "log-format", string(telemetry.LogText), "`format` of the log: text or json")
	f.StringVar(&p.traceFile, "trace-file", "", "append OpenTelemetry spans to this `file`, as OTLP/JSON lines")
}

// service is the name of ddiff in telemetry; the processes of a cluster append their role.
const service = "ddiff"

// telemetry starts traces, metrics and logs. Stop flushes and ends them.
func (p processFlags) telemetry(ctx context.Context, name string, stderr io.Writer) (tel *telemetry.Telemetry, stop func(), err error) {
	level, err := parseLevel(p.logLevel)
	if err != nil {
		return nil, nil, err
	}
	cfg := telemetry.Config{
		Service: name, Version: version(), TraceFile: p.traceFile,
		LogLevel: level, LogFormat: telemetry.LogFormat(p.logFormat), LogOutput: stderr,
		Prometheus: p.prometheus,
	}
	if err := cfg.Validate(); err != nil {
		return nil, nil, usage(fmt.Errorf("--log-format: %w", err))
	}
	ignored := strings.Join(telemetry.IgnoredVariables(os.Getenv), "; ")
	asJSON := cfg.LogFormat == telemetry.LogJSON
	if ignored != "" && !asJSON {
		fmt.Fprintf(stderr, "ddiff: ignored variables of the environment: %s\n", ignored)
	}
	if tel, err = telemetry.Start(ctx, cfg); err != nil {
		return nil, nil, usage(fmt.Errorf("start telemetry: %w", err))
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
		return 0, usage(fmt.Errorf("--log-level: %q is none of debug, info, warn, error, off", text))
	}
	return l, nil
}
