package telemetry

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"os"
)

// LogFormat is the format of log records.
type LogFormat string

// The log formats.
const (
	// LogText is key=value lines.
	LogText LogFormat = "text"
	// LogJSON is one JSON object per line.
	LogJSON LogFormat = "json"
)

// Config configures the telemetry of a process. The zero value is valid: text logs at level info on standard error, and
// exporters as the environment sets them.
type Config struct {
	// Service is the service.name of every span and metric. Default "ddiff".
	Service string
	// Version is the service.version. Empty: the attribute is omitted.
	Version string
	// TraceFile is the file to which spans are appended as OTLP/JSON lines; missing parent directories are created.
	// Default: no file.
	TraceFile string
	// Prometheus provides the metrics to [Telemetry.Metrics], in addition to other exporters.
	Prometheus bool
	// LogLevel is the lowest level of logged records. Default info.
	LogLevel slog.Level
	// LogFormat is [LogText] or [LogJSON]. Default text.
	LogFormat LogFormat
	// LogOutput receives log records. Default standard error.
	LogOutput io.Writer
}

// Validate reports the first field with an invalid value.
func (c Config) Validate() error {
	switch c.LogFormat {
	case "", LogText, LogJSON:
		return nil
	default:
		return fmt.Errorf("telemetry: LogFormat is %q: use %q or %q", c.LogFormat, LogText, LogJSON)
	}
}

func (c Config) withDefaults() Config {
	c.Service = cmp.Or(c.Service, "ddiff")
	c.LogFormat = cmp.Or(c.LogFormat, LogText)
	c.LogOutput = cmp.Or[io.Writer](c.LogOutput, os.Stderr)
	return c
}
