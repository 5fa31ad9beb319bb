package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"ddiff/telemetry"
)

// processFlags say what a process tells of itself.
type processFlags struct {
	traceFile string
	logLevel  string
	logFormat string
}

func (p *processFlags) add(f *pflag.FlagSet, level string) {
	f.StringVar(&p.traceFile, "trace-file", "", "append OpenTelemetry spans to this file, as OTLP/JSON lines")
	f.StringVar(&p.logLevel, "log-level", level, "log to standard error: debug, info, warn, error, off")
	f.StringVar(&p.logFormat, "log-format", string(telemetry.LogText), "text or json")
}

// service is the name of all processes of ddiff, and the beginning of those of a cluster.
const service = "ddiff"

// telemetry starts traces, metrics and logs; stop ends them.
func (p processFlags) telemetry(ctx context.Context, name string, stderr io.Writer) (tel *telemetry.Telemetry, stop func(), err error) {
	level, err := parseLevel(p.logLevel)
	if err != nil {
		return nil, nil, err
	}
	cfg := telemetry.Config{
		Service: name, Version: version(), TraceFile: p.traceFile,
		LogLevel: level, LogFormat: telemetry.LogFormat(p.logFormat), LogOutput: stderr,
	}
	if err := cfg.Validate(); err != nil {
		return nil, nil, usageError{fmt.Errorf("--log-format: %w", err)}
	}
	if tel, err = telemetry.Start(ctx, cfg); err != nil {
		return nil, nil, fmt.Errorf("start telemetry: %w", err)
	}
	return tel, func() {
		flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := tel.Shutdown(flush); err != nil {
			fmt.Fprintln(stderr, "ddiff: telemetry:", err)
		}
	}, nil
}

// parseLevel reads the value of --log-level.
func parseLevel(text string) (slog.Level, error) {
	if text == "off" {
		return slog.Level(100), nil
	}
	var l slog.Level
	if err := l.UnmarshalText([]byte(text)); err != nil {
		return 0, usageError{fmt.Errorf("--log-level: %q is none of debug, info, warn, error, off", text)}
	}
	return l, nil
}
