package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
)

// LogFormat is how log records are written.
type LogFormat string

// The log formats.
const (
	// LogText writes key=value lines.
	LogText LogFormat = "text"
	// LogJSON writes one JSON object per line.
	LogJSON LogFormat = "json"
)

// Config says what one process records. The zero value is valid: text logs at level info on
// standard error, and exporters as the environment asks.
type Config struct {
	// Service is the service.name of every span and metric. Default "ddiff".
	Service string
	// Version is the service.version; empty leaves the attribute out.
	Version string
	// Instance is the service.instance.id, which tells replicas apart. Default "HOST-PID".
	Instance string
	// TraceFile is the file to which spans are appended as OTLP/JSON lines; missing parent
	// directories are made. Empty means none.
	TraceFile string
	// LogLevel is the lowest level that is logged. Default info.
	LogLevel slog.Level
	// LogFormat is [LogText] or [LogJSON]. Default text.
	LogFormat LogFormat
	// LogOutput is where log records go. Default standard error.
	LogOutput io.Writer
	// Environ looks up the variables that switch exporters on. Default [os.Getenv]. An exporter
	// that is on, and the resource attributes, read the rest from the process environment.
	Environ func(string) string
}

// Validate names the first field that has a bad value.
func (c Config) Validate() error {
	switch c.LogFormat {
	case "", LogText, LogJSON:
		return nil
	default:
		return fmt.Errorf("telemetry: LogFormat is %q: use %q or %q", c.LogFormat, LogText, LogJSON)
	}
}

// withDefaults returns c with every empty field that has a default filled in.
func (c Config) withDefaults() Config {
	if c.Service == "" {
		c.Service = "ddiff"
	}
	if c.Instance == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown"
		}
		c.Instance = host + "-" + strconv.Itoa(os.Getpid())
	}
	if c.LogFormat == "" {
		c.LogFormat = LogText
	}
	if c.LogOutput == nil {
		c.LogOutput = os.Stderr
	}
	if c.Environ == nil {
		c.Environ = os.Getenv
	}
	return c
}
