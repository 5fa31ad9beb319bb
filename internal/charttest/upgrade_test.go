package charttest

import (
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v4/pkg/action"
	chartcommon "helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// testUpgrade installs the previous chart with Helm and upgrades it to this one.
func testUpgrade(t *testing.T, s *apiServer) {
	version, renderings := previous(t)
	current := loadChart(t).Metadata.Version
	if !semver.MustParse(version).LessThan(semver.MustParse(current)) {
		t.Fatalf("testdata/previous has version %s, the chart %s; raise the version of the chart, or store its previous rendering", version, current)
	}
	for name, rendering := range renderings {
		t.Run(name, func(t *testing.T) {
			space := "upgrade-" + name
			must(t, s.namespace(t.Context(), space))
			cfg := s.helm(t, space)
			install := action.NewInstall(cfg)
			install.ReleaseName, install.Namespace, install.ServerSideApply, install.WaitStrategy = release, space, true, kube.HookOnlyStrategy
			if _, err := install.Run(storedChart(version, rendering, space), nil); err != nil {
				t.Fatalf("install %s: %v", version, err)
			}
			upgrade := action.NewUpgrade(cfg)
			upgrade.Namespace, upgrade.WaitStrategy = space, kube.HookOnlyStrategy
			if _, err := upgrade.Run(release, loadChart(t), example(t, name)); err != nil {
				t.Fatalf("upgrade from %s: %v", version, err)
			}
			if all := s.warnings.take(); len(all) > 0 {
				t.Errorf("warnings: %s", strings.Join(all, "; "))
			}
			// The server has every object of this version.
			for _, object := range mustRender(t, name) {
				if object.GetKind() == "Pod" { // Helm makes it for `helm test`
					continue
				}
				object.SetNamespace(space)
				stored, err := s.get(t.Context(), object)
				if err != nil {
					t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
					continue
				}
				if got := stored.GetLabels()["helm.sh/chart"]; got != "ddiff-"+current {
					t.Errorf("%s %s is of %s", object.GetKind(), object.GetName(), got)
				}
			}
			uninstall := action.NewUninstall(cfg)
			uninstall.WaitStrategy = kube.HookOnlyStrategy
			if _, err := uninstall.Run(release); err != nil {
				t.Errorf("uninstall: %v", err)
			}
		})
	}
}

// storedChart is a chart whose only template is a rendering of another chart.
func storedChart(version, rendering, space string) *chart.Chart {
	text := strings.ReplaceAll(rendering, "namespace: "+namespace, "namespace: "+space)
	if i := strings.Index(text, "---\n# coordinator.yaml"); i >= 0 { // without the notes
		text = text[i:]
	}
	text = strings.ReplaceAll(text, "{{", "{{`{{`}}")
	return &chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: "v2", Name: "ddiff", Version: version, Type: "application"},
		Templates: []*chartcommon.File{{Name: "templates/all.yaml", Data: []byte(text)}},
	}
}

// helm returns the configuration of Helm for a namespace.
func (s *apiServer) helm(t *testing.T, space string) *action.Configuration {
	t.Helper()
	insecure := true
	flags := genericclioptions.NewConfigFlags(false)
	flags.APIServer, flags.BearerToken, flags.Insecure, flags.Namespace = &s.config.Host, &s.token, &insecure, &space
	flags.WithWarningPrinter(genericclioptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard})
	cfg := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	must(t, cfg.Init(flags, space, "secret"))
	return cfg
}
