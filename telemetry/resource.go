package telemetry

import (
	"context"
	"os"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// newResource describes this process: service, host, process and SDK. OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME
// take precedence over cfg. With [resource.ErrPartialResource] the returned resource holds the available attributes.
func newResource(ctx context.Context, cfg Config) (*resource.Resource, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	service := []attribute.KeyValue{
		semconv.ServiceName(cfg.Service),
		semconv.ServiceInstanceID(host + "-" + strconv.Itoa(os.Getpid())),
	}
	if cfg.Version != "" {
		service = append(service, semconv.ServiceVersion(cfg.Version))
	}
	return resource.New(ctx,
		resource.WithAttributes(service...),
		resource.WithTelemetrySDK(),
		resource.WithHost(),
		resource.WithOSType(),
		resource.WithProcessPID(),
		resource.WithProcessExecutableName(),
		resource.WithProcessRuntimeName(),
		resource.WithProcessRuntimeVersion(),
		resource.WithFromEnv(),
	)
}
