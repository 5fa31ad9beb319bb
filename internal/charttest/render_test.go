package charttest

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	chartcommon "helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the rendered objects to testdata/rendered")

const (
	chartDir = "../../charts/ddiff"
	// release and namespace are those of the tests.
	release   = "fleet"
	namespace = "restoration"
)

// natsArchive is the chart of the NATS servers, as `helm dependency build` stores it.
const natsArchive = "nats-2.14.2.tgz"

// examples returns the names of the values files, without their ending.
func examples(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chartDir, "examples", "*.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("found %d values files: %v", len(files), err)
	}
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".yaml"))
	}
	return names
}

// example reads a values file.
func example(t *testing.T, name string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(chartDir, "examples", name+".yaml"))
	must(t, err)
	values := map[string]any{}
	if err := sigsyaml.UnmarshalStrict(data, &values); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return values
}

// loadChart loads the chart without the chart of NATS.
func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(chartDir)
	must(t, err)
	c.SetDependencies()
	return c
}

// render renders the chart as `helm install` does. It returns the texts of the files, without the notes.
func render(c *chart.Chart, values map[string]any) (map[string]string, error) {
	return renderIn(c, values, namespace)
}

// renderIn is render in another namespace.
func renderIn(c *chart.Chart, values map[string]any, namespace string) (map[string]string, error) {
	if err := chartutil.ProcessDependencies(c, values); err != nil {
		return nil, err
	}
	options := chartcommon.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
	capabilities := chartcommon.DefaultCapabilities.Copy()
	all, err := commonutil.ToRenderValues(c, values, options, capabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}

// objects decodes the rendered files, in the order of their names.
func objects(files map[string]string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(files[name])), 4096)
		for {
			object := &unstructured.Unstructured{}
			err := decoder.Decode(object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if len(object.Object) > 0 {
				all = append(all, object)
			}
		}
	}
	return all, nil
}

// mustRender renders the chart with a values file.
func mustRender(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	return mustRenderValues(t, example(t, name))
}

func mustRenderValues(t *testing.T, values map[string]any) []*unstructured.Unstructured {
	t.Helper()
	files, err := render(loadChart(t), values)
	must(t, err)
	all, err := objects(files)
	must(t, err)
	return all
}

// find returns the object of a kind with a suffix of its name.
func find(t *testing.T, all []*unstructured.Unstructured, kind, suffix string) *unstructured.Unstructured {
	t.Helper()
	for _, object := range all {
		if object.GetKind() == kind && strings.HasSuffix(object.GetName(), suffix) {
			return object
		}
	}
	t.Fatalf("no %s with a name that ends in %q", kind, suffix)
	return nil
}

func TestRenderedObjects(t *testing.T) {
	for _, name := range examples(t) {
		t.Run(name, func(t *testing.T) {
			files, err := render(loadChart(t), example(t, name))
			must(t, err)
			if _, err := objects(files); err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			for _, file := range slices.Sorted(maps.Keys(files)) {
				if content := strings.TrimSpace(files[file]); content != "" {
					fmt.Fprintf(&text, "---\n# %s\n%s\n", strings.TrimPrefix(file, "ddiff/templates/"), strings.TrimPrefix(content, "---\n"))
				}
			}
			golden := filepath.Join("testdata", "rendered", name+".yaml")
			if *update {
				must(t, os.WriteFile(golden, []byte(text.String()), 0o644))
			}
			want, err := os.ReadFile(golden)
			must(t, err)
			if text.String() != string(want) {
				t.Errorf("the chart renders other objects than %s; if that is intended, run `go test -run TestRenderedObjects -update`", golden)
			}
		})
	}
}

// Every stored rendering belongs to a values file.
func TestRenderedObjectsAreCurrent(t *testing.T) {
	stored, err := filepath.Glob("testdata/rendered/*.yaml")
	must(t, err)
	names := examples(t)
	for _, file := range stored {
		if !slices.Contains(names, strings.TrimSuffix(filepath.Base(file), ".yaml")) {
			t.Errorf("%s belongs to no values file; remove it", file)
		}
	}
}

func TestLint(t *testing.T) {
	for _, name := range examples(t) {
		t.Run(name, func(t *testing.T) {
			result := lint.RunAll(chartDir, example(t, name), namespace)
			for _, message := range result.Messages {
				// `helm dependency build` adds the chart of NATS.
				missing := strings.Contains(message.Err.Error(), "chart directory is missing these dependencies: nats")
				icon := strings.Contains(message.Err.Error(), "icon is recommended")
				if !missing && !icon && message.Severity > support.UnknownSev {
					t.Error(message)
				}
			}
		})
	}
}

// must fails the test at an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
