package charttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	sigsyaml "sigs.k8s.io/yaml"
)

// definitions is a Go module with custom resource definitions. Only its files are read; no code of it is built.
type definitions struct {
	module, version, sum string
	files                []string
}

// operators are the modules of the definitions that the chart uses.
func operators() []definitions {
	const crds = "example/prometheus-operator-crd/monitoring.coreos.com_"
	return []definitions{
		{"github.com/kedacore/keda/v2", "v2.21.0", "h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps=",
			[]string{"config/crd/bases/keda.sh_scaledobjects.yaml", "config/crd/bases/keda.sh_scaledjobs.yaml"}},
		// The newest version of this module on the proxy; later ones exist without the definitions.
		{"github.com/prometheus-operator/prometheus-operator", "v0.85.0", "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
			[]string{crds + "servicemonitors.yaml", crds + "podmonitors.yaml", crds + "prometheusrules.yaml"}},
	}
}

// read returns the definitions, downloading the module if needed.
func (d definitions) read(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", d.module+"@"+d.version)
	var stderr bytes.Buffer
	download.Stderr = &stderr
	out, err := download.Output()
	if err != nil {
		t.Fatalf("download %s: %v\n%s%s", d.module, err, out, stderr.Bytes())
	}
	var module struct{ Dir, Sum string }
	must(t, json.Unmarshal(out, &module))
	if module.Sum != d.sum {
		t.Fatalf("%s@%s has the digest %s, want %s", d.module, d.version, module.Sum, d.sum)
	}
	var all []*unstructured.Unstructured
	for _, file := range d.files {
		data, err := os.ReadFile(filepath.Join(module.Dir, filepath.FromSlash(file)))
		must(t, err)
		object := &unstructured.Unstructured{}
		must(t, sigsyaml.Unmarshal(data, &object.Object))
		all = append(all, object)
	}
	return all
}

// define creates the definitions of all operators and waits until the server serves them.
func (s *apiServer) define(t *testing.T) {
	t.Helper()
	for _, d := range operators() {
		for _, definition := range d.read(t) {
			must(t, s.apply(t.Context(), definition))
			ctx, cancel := context.WithTimeout(t.Context(), startWithin)
			waitFor(ctx, t, definition.GetName(), func() error {
				stored, err := s.get(ctx, definition)
				if err != nil {
					return err
				}
				conditions, _, err := unstructured.NestedSlice(stored.Object, "status", "conditions")
				for _, c := range conditions {
					if c := c.(map[string]any); c["type"] == "Established" && c["status"] == "True" {
						return nil
					}
				}
				return fmt.Errorf("not established: %v, %w", conditions, err)
			})
			cancel()
		}
	}
	s.mapper.Reset()
	s.warnings.take() // of the definitions, which are not ours
	deadline, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, kind := range []string{"ScaledObject.keda.sh", "ScaledJob.keda.sh", "PodMonitor.monitoring.coreos.com"} {
		waitFor(deadline, t, kind, func() error { s.mapper.Reset(); return s.knows(kind) })
	}
}
