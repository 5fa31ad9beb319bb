package deploy

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// compose loads the text of a compose file as the compose specification defines it, which includes its schema.
func compose(ctx context.Context, text string) (*types.Project, error) {
	return loader.LoadWithContext(ctx, types.ConfigDetails{
		WorkingDir:  root,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(root, "compose.yaml"), Content: []byte(text)}},
	})
}

// project loads compose.yaml.
func project(t *testing.T) *types.Project {
	t.Helper()
	p, err := compose(t.Context(), read(t, "compose.yaml"))
	must(t, err)
	return p
}

// The loader refuses typing errors, so that a file that it accepts means something.
func TestComposeRefusesErrors(t *testing.T) {
	text := read(t, "compose.yaml")
	for _, change := range [][2]string{
		{"healthcheck:", "healthchek:"}, {"interval: 2s", "interval: soon"}, {`volumes: ["nats:/data"]`, `volumes: ["other:/data"]`},
		{"condition: service_healthy", "condition: healthy"}, {"read_only: true", "read_only: [1]"},
	} {
		if !strings.Contains(text, change[0]) {
			t.Fatalf("compose.yaml lacks %q", change[0])
		}
		if _, err := compose(t.Context(), strings.ReplaceAll(text, change[0], change[1])); err == nil {
			t.Errorf("%q is accepted", change[1])
		}
	}
}

// Every service has a pinned image, limits, and ports on the loopback address only; the files that it mounts exist.
func TestComposeServices(t *testing.T) {
	p := project(t)
	pinned := regexp.MustCompile(`:v?\d+\.\d+\.\d+[^:@]*@sha256:[0-9a-f]{64}$`)
	for _, name := range []string{"nats", "s3", "coordinator", "worker-1", "worker-2", "collector", "jaeger", "prometheus", "grafana"} {
		if _, ok := p.Services[name]; !ok {
			t.Errorf("there is no service %s", name)
		}
	}
	builders := map[string]int{}
	for _, s := range p.Services {
		if s.Build != nil {
			builders[s.Image]++
		}
	}
	for image, n := range builders {
		if n > 1 { // compose builds at once, and only one build can give an image its name
			t.Errorf("%d services build the image %s", n, image)
		}
	}
	for name, s := range p.Services {
		if s.Build == nil && builders[s.Image] > 0 && s.PullPolicy != types.PullPolicyNever {
			t.Errorf("%s pulls the image %s, which another service builds", name, s.Image)
		}
		if s.Build == nil && builders[s.Image] == 0 && !pinned.MatchString(s.Image) {
			t.Errorf("%s: image %s is not pinned by version and digest", name, s.Image)
		}
		if s.Build != nil {
			if _, err := os.Stat(filepath.Join(root, s.Build.Dockerfile)); err != nil || s.Build.Context != root {
				t.Errorf("%s: build %+v: %v", name, s.Build, err)
			}
		}
		if s.Deploy == nil || s.Deploy.Resources.Limits == nil || s.Deploy.Resources.Limits.MemoryBytes == 0 || s.Deploy.Resources.Limits.NanoCPUs == 0 {
			t.Errorf("%s has no limits", name)
		}
		if !s.ReadOnly || len(s.CapDrop) != 1 || s.CapDrop[0] != "ALL" || s.Privileged {
			t.Errorf("%s: read_only %t, cap_drop %v", name, s.ReadOnly, s.CapDrop)
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes port %s at %q", name, port.Published, port.HostIP)
			}
		}
		for _, v := range s.Volumes {
			if _, err := os.Stat(v.Source); v.Type == types.VolumeTypeBind && (err != nil || !v.ReadOnly) {
				t.Errorf("%s mounts %s: %v, read only: %t", name, v.Source, err, v.ReadOnly)
			}
		}
		// The image of the collector has no program but the collector, and that of Jaeger is a client of nobody here.
		if s.HealthCheck == nil && name != "collector" && name != "jaeger" {
			t.Errorf("%s has no health check", name)
		}
		for key, value := range s.Environment {
			secret := regexp.MustCompile(`KEY|SECRET|PASSWORD|TOKEN`).MatchString(key)
			if secret && value != nil && !strings.HasPrefix(*value, "demo-") {
				t.Errorf("%s: %s has a value that does not begin with demo-", name, key)
			}
		}
	}
}

// A worker has more time to end than --grace, so that it stores its checkpoints.
func TestComposeGrace(t *testing.T) {
	for name, s := range project(t).Services {
		if !strings.HasPrefix(name, "worker-") {
			continue
		}
		grace := flagValue(t, s.Command, "--grace")
		if s.StopGracePeriod == nil || time.Duration(*s.StopGracePeriod) < grace+10*time.Second {
			t.Errorf("%s: stop_grace_period %v, --grace %v", name, s.StopGracePeriod, grace)
		}
	}
}

// flagValue returns the duration of a flag.
func flagValue(t *testing.T, args []string, name string) time.Duration {
	t.Helper()
	for i, a := range args {
		if a == name && i+1 < len(args) {
			d, err := time.ParseDuration(args[i+1])
			must(t, err)
			return d
		}
	}
	t.Fatalf("%v has no %s", args, name)
	return 0
}

// Coordinator and workers reach NATS, store and collector under the names of services, and with the keys of the store.
func TestComposeAddresses(t *testing.T) {
	p := project(t)
	admin := p.Services["s3"].Environment
	for _, name := range []string{"coordinator", "worker-1", "worker-2"} {
		env := p.Services[name].Environment
		for key, want := range map[string]string{
			"DDIFF_NATS_URL": "nats://nats:4222", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
			"AWS_SHARED_CREDENTIALS_FILE": "/run/secrets/aws",
		} {
			if env[key] == nil || *env[key] != want {
				t.Errorf("%s: %s is not %s", name, key, want)
			}
		}
		role, _, _ := strings.Cut(name, "-")
		if s := p.Services[name].Secrets; len(s) == 0 || s[0].Source != role || s[0].Target != "aws" {
			t.Errorf("%s mounts %+v", name, s)
		}
		keys, err := os.ReadFile(p.Secrets[role].File)
		must(t, err)
		for _, key := range []string{"ROOT_ACCESS_KEY_ID", "ROOT_SECRET_ACCESS_KEY"} {
			if !strings.Contains(string(keys), *admin[key]) {
				t.Errorf("the keys of %s are not those of the server: %s", name, key)
			}
		}
		if test := strings.Join(p.Services[name].HealthCheck.Test, " "); !strings.Contains(test, "GET /readyz") ||
			!slices.Contains(p.Services[name].Command, "127.0.0.1:8090") {
			t.Errorf("%s: the health check %s does not ask /readyz", name, test)
		}
	}
	for _, port := range []struct{ file, text string }{
		{"deploy/compose/collector.yaml", "endpoint: 0.0.0.0:4318"}, {"deploy/compose/collector.yaml", "endpoint: jaeger:4317"},
		{"deploy/compose/grafana/datasources/datasources.yaml", "url: http://prometheus:9090"},
		{"deploy/compose/grafana/datasources/datasources.yaml", "url: http://jaeger:16686"},
	} {
		if !strings.Contains(read(t, port.file), port.text) {
			t.Errorf("%s has no %q", port.file, port.text)
		}
	}
}
