package charttest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/strvals"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// changed renders an example with changed values.
func changed(t *testing.T, name, set string) []*unstructured.Unstructured {
	t.Helper()
	values := example(t, name)
	must(t, strvals.ParseInto(set, values))
	return mustRenderValues(t, values)
}

// Each pool has a Deployment or a ScaledJob with its own values in place of the shared ones, and a trigger that reads its own series.
func TestPools(t *testing.T) {
	all := changed(t, "pools", "workers[2].replicas=0,workers[2].threads=0")
	templates := pods(t, all)
	for pool, want := range map[string]struct{ device, threads, grace, resource string }{
		"a100": {"cuda:0", "", "60s", "nvidia.com/gpu"}, "mig": {"cuda:0", "", "25s", "nvidia.com/mig-1g.10gb"}, "cpu": {"cpu", "", "25s", ""},
	} {
		pod := templates[release+"-ddiff-worker-"+pool]
		if pod == nil {
			t.Fatalf("no pods of the pool %s: %v", pool, slices.Sorted(maps.Keys(templates)))
		}
		if flagValue(pod, "pool") != pool || flagValue(pod, "device") != want.device || flagValue(pod, "threads") != want.threads || flagValue(pod, "grace") != want.grace {
			t.Errorf("the workers of the pool %s have %q", pool, pod.Spec.Containers[0].Args)
		}
		limits := pod.Spec.Containers[0].Resources.Limits
		if n := limits[corev1.ResourceName(want.resource)]; want.resource != "" && n.Value() != 1 || limits.Memory().IsZero() {
			t.Errorf("the workers of the pool %s have the limits %v", pool, limits)
		}
		if !slices.Contains(templates[release+"-ddiff-coordinator"].Spec.Containers[0].Args, "--pools="+pool) {
			t.Errorf("the coordinators do not know the pool %s", pool)
		}
	}
	replicas, found, err := unstructured.NestedInt64(find(t, all, "Deployment", "-worker-cpu").Object, "spec", "replicas")
	if replicas != 0 || !found || err != nil {
		t.Errorf("the pool cpu has %d replicas: %v", replicas, err)
	}
	for pool, want := range map[string]string{"a100": `ddiff_queue_lag{pool="a100"}`, "mig": `ddiff_queue_lag{pool="mig"}`} {
		if got := triggerOf(t, all, "ScaledObject", pool)["valueLocation"]; got != want {
			t.Errorf("KEDA reads %v, want %s", got, want)
		}
	}
}

func triggerOf(t *testing.T, all []*unstructured.Unstructured, kind, pool string) map[string]any {
	t.Helper()
	triggers, _, err := unstructured.NestedSlice(find(t, all, kind, "-worker-"+pool).Object, "spec", "triggers")
	if err != nil || len(triggers) != 1 {
		t.Fatalf("%d triggers: %v", len(triggers), err)
	}
	return triggers[0].(map[string]any)["metadata"].(map[string]any)
}

// A release without coordinators has workers only; KEDA reads the coordinators of the other release.
func TestCoordinatorsElsewhere(t *testing.T) {
	all := changed(t, "pools", "coordinator.replicas=0,coordinator.service=fleet-ddiff-coordinator.restoration,metrics.cluster=restoration/fleet-ddiff")
	for _, object := range all {
		if kind := object.GetKind(); strings.HasSuffix(object.GetName(), "-coordinator") && kind != "ServiceAccount" && kind != "NetworkPolicy" {
			t.Errorf("%s %s is left", object.GetKind(), object.GetName())
		}
	}
	if got, want := triggerOf(t, all, "ScaledObject", "a100")["url"], "http://fleet-ddiff-coordinator.restoration.svc:9090/metrics"; got != want {
		t.Errorf("KEDA reads %v, want %s", got, want)
	}
	all = changed(t, "gke-spot", "coordinator.replicas=0,metrics.cluster=restoration/fleet-ddiff")
	if got, want := triggerOf(t, all, "ScaledJob", "default")["query"], `max(ddiff_queue_lag{ddiff_cluster="restoration/fleet-ddiff",pool="default"})`; got != want {
		t.Errorf("KEDA asks for %v, want %s", got, want)
	}
}

// The servers of the chart admit the workers of other releases if the values name their pools, and no pod of another namespace otherwise.
func TestServersAdmitOtherReleases(t *testing.T) {
	worker := pods(t, mustRender(t, "minimal"))[release+"-ddiff-worker-default"]
	worker.Labels["app.kubernetes.io/instance"] = "another"
	for set, want := range map[string]bool{"": false, "coordinator.pools[0]=a100": true} {
		var policy networkingv1.NetworkPolicy
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(find(t, changed(t, "bare-metal", set), "NetworkPolicy", "-nats").Object, &policy))
		admitted := slices.ContainsFunc(policy.Spec.Ingress[0].From, func(p networkingv1.NetworkPolicyPeer) bool {
			return p.NamespaceSelector != nil && matches(t, p.NamespaceSelector, map[string]string{"kubernetes.io/metadata.name": "another"}) &&
				matches(t, p.PodSelector, worker.Labels)
		})
		if admitted != want {
			t.Errorf("%s: the servers admit a worker of another release and namespace: %t", set, admitted)
		}
	}
}

// With restricted connections, pods reach the collector; KEDA's namespace is a value.
func TestTelemetryAndKEDA(t *testing.T) {
	for endpoint, want := range map[string]int32{
		"http://collector.monitoring:4318": 4318, "http://collector:4317/": 4317, "https://otel.example.org/v1": 443, "http://otel.example.org": 80,
	} {
		all := changed(t, "bare-metal", "telemetry.endpoint="+endpoint)
		for _, role := range []string{"coordinator", "worker", "test"} {
			var policy networkingv1.NetworkPolicy
			must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(find(t, all, "NetworkPolicy", "-"+role).Object, &policy))
			reaches := slices.ContainsFunc(policy.Spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool {
				return len(r.To) == 0 && len(r.Ports) == 1 && r.Ports[0].Port.IntVal == want
			})
			if reaches != (role != "test") {
				t.Errorf("%s: pods of %s reach the port %d: %t", endpoint, role, want, reaches)
			}
		}
	}
	// Also if KEDA starts the workers of other releases only.
	for name, set := range map[string]string{"pools": "", "minimal": ",coordinator.pools[0]=a100"} {
		var policy networkingv1.NetworkPolicy
		object := find(t, changed(t, name, "networkPolicy.kedaNamespace=scalers"+set), "NetworkPolicy", "-coordinator")
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &policy))
		if len(policy.Spec.Ingress) == 0 {
			t.Errorf("%s%s: the coordinators admit nobody", name, set)
		} else if from := policy.Spec.Ingress[0].From[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"]; from != "scalers" {
			t.Errorf("%s%s: the coordinators admit %q", name, set, from)
		}
	}
}

// The fields that the values give as they are reach the pods of their component only.
func TestPodFields(t *testing.T) {
	for _, role := range []string{"coordinator", "worker"} {
		set := []string{"commonLabels.team=imaging"}
		for _, field := range []string{
			"envFrom[0].secretRef.name=proxy", "lifecycle.preStop.sleep.seconds=5", "initContainers[0].name=fetch", "initContainers[0].image=fetch:1",
			"extraVolumes[0].name=data", "extraVolumes[0].emptyDir.sizeLimit=1Gi", "extraVolumeMounts[0].name=data", "extraVolumeMounts[0].mountPath=/data",
		} {
			set = append(set, role+"."+field)
		}
		all := changed(t, "minimal", strings.Join(set, ","))
		for name, pod := range pods(t, all) {
			c := pod.Spec.Containers[0]
			n := len(c.EnvFrom) + len(pod.Spec.InitContainers)
			if c.Lifecycle != nil {
				n++
			}
			for _, v := range pod.Spec.Volumes {
				if v.Name == "data" && v.EmptyDir != nil {
					n++
				}
			}
			for _, m := range c.VolumeMounts {
				if m.Name == "data" && m.MountPath == "/data" {
					n++
				}
			}
			want := 0
			if component(pod) == role {
				want = 5
			}
			if n != want || pod.Labels["team"] != "imaging" {
				t.Errorf("%s: %s has %d of the 5 fields and the labels %v", role, name, n, pod.Labels)
			}
		}
		for _, object := range all {
			if object.GetLabels()["team"] != "imaging" {
				t.Errorf("%s %s lacks the common label", object.GetKind(), object.GetName())
			}
		}
	}
}
