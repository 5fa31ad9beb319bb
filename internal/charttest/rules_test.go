package charttest

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/strvals"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// podTemplate returns the pod of an object that has one: a Deployment, a ScaledJob or a Pod.
func podTemplate(object *unstructured.Unstructured) (*corev1.PodTemplateSpec, error) {
	path := map[string][]string{
		"Deployment": {"spec", "template"}, "StatefulSet": {"spec", "template"}, "ScaledJob": {"spec", "jobTargetRef", "template"}, "Pod": {},
	}[object.GetKind()]
	if path == nil {
		return nil, nil
	}
	content, found, err := unstructured.NestedMap(object.Object, path...)
	if err != nil || !found {
		return nil, fmt.Errorf("%s: no pod at %v: %w", object.GetName(), path, err)
	}
	delete(content, "apiVersion")
	delete(content, "kind")
	pod := &corev1.PodTemplateSpec{}
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, pod, true)
	return pod, err
}

// pods returns the pods of all objects by the names of the objects.
func pods(t *testing.T, all []*unstructured.Unstructured) map[string]*corev1.PodTemplateSpec {
	t.Helper()
	found := map[string]*corev1.PodTemplateSpec{}
	for _, object := range all {
		pod, err := podTemplate(object)
		must(t, err)
		if pod != nil {
			found[object.GetName()] = pod
		}
	}
	if len(found) < 3 {
		t.Fatalf("%d objects have pods, want coordinator, workers and test", len(found))
	}
	return found
}

// component returns the component of a pod: coordinator, worker or test.
func component(pod *corev1.PodTemplateSpec) string { return pod.Labels["app.kubernetes.io/component"] }

// flagValue returns the value of --name=value among the arguments of the first container.
func flagValue(pod *corev1.PodTemplateSpec, name string) string {
	for _, argument := range pod.Spec.Containers[0].Args {
		if value, found := strings.CutPrefix(argument, "--"+name+"="); found {
			return value
		}
	}
	return ""
}

// Each pod runs without rights, and writes to its volumes only.
func TestPodsHaveNoRights(t *testing.T) {
	for _, name := range examples(t) {
		for object, pod := range pods(t, mustRender(t, name)) {
			t.Run(name+"/"+object, func(t *testing.T) {
				c := pod.Spec.Containers[0]
				s := c.SecurityContext
				if s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation ||
					!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || !*pod.Spec.SecurityContext.RunAsNonRoot ||
					pod.Spec.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
					t.Errorf("security contexts %+v, %+v", pod.Spec.SecurityContext, s)
				}
				if *pod.Spec.AutomountServiceAccountToken {
					t.Error("the pod gets a token for the Kubernetes API, which ddiff does not call")
				}
				writable := map[string]bool{}
				for _, v := range pod.Spec.Volumes {
					writable[v.Name] = v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil
				}
				mounted := map[string]string{}
				for _, m := range c.VolumeMounts {
					mounted[m.MountPath] = m.Name
					if !m.ReadOnly && !writable[m.Name] && m.Name != "store" {
						t.Errorf("%s is writable", m.MountPath)
					}
				}
				for _, path := range []string{"/tmp", "/var/cache/ddiff"} {
					if !writable[mounted[path]] && (path == "/tmp" || component(pod) != "test") {
						t.Errorf("%s is not an emptyDir with a limit", path)
					}
				}
			})
		}
	}
}

// sizeOf reads a constant of ddiff, as in `NAME int64 = 10 << 30`.
func sizeOf(t *testing.T, file, name string) int64 {
	t.Helper()
	data, err := os.ReadFile("../../" + file)
	must(t, err)
	found := regexp.MustCompile(name + ` int64 = (\d+) << (\d+)`).FindSubmatch(data)
	if found == nil {
		t.Fatalf("%s has no size %s", file, name)
	}
	number, err := strconv.ParseInt(string(found[1]), 10, 64)
	must(t, err)
	shift, err := strconv.Atoi(string(found[2]))
	must(t, err)
	return number << shift
}

// The volume of the cache holds what the program caches by default, else Kubernetes would evict its pod.
func TestCachesFitIntoVolumes(t *testing.T) {
	datasets, priors := sizeOf(t, "storage/cache.go", "DefaultCacheBytes"), sizeOf(t, "internal/gpuworker/enginecache/priorfile.go", "cacheBytes")
	for object, pod := range pods(t, mustRender(t, "minimal")) {
		want := map[string]int64{"coordinator": datasets, "worker": datasets + priors}[component(pod)]
		for _, v := range pod.Spec.Volumes {
			if v.Name == "cache" && v.EmptyDir.SizeLimit.Value() < want+want/16 { // by which several processes may exceed it
				t.Errorf("%s: the cache has up to %d MiB, its volume %v", object, (want+want/16)>>20, v.EmptyDir.SizeLimit)
			}
		}
	}
}

// A pod has the secrets of its own role only.
func TestSecretsOfRoles(t *testing.T) {
	for _, name := range examples(t) {
		values := example(t, name)
		for _, pod := range pods(t, mustRenderValues(t, values)) {
			role := component(pod)
			text := fmt.Sprint(pod.Spec.Volumes, pod.Spec.Containers[0].Env)
			for _, other := range []string{"coordinator", "worker", "admin"} {
				if secret := "ddiff-" + other; other != role && (other != "admin" || role == "worker") && (strings.Contains(text, "SecretName:"+secret+",") || strings.Contains(text, "Name:"+secret+",")) {
					t.Errorf("%s: the pod of %s has the secret %s", name, role, secret)
				}
			}
			if role == "test" && strings.Contains(text, "AWS_") {
				t.Errorf("%s: the test has keys of the store", name)
			}
		}
	}
}

// Kubernetes waits longer for a stopped worker than the worker for its checkpoints.
func TestGracePeriod(t *testing.T) {
	for _, name := range examples(t) {
		for _, worker := range pods(t, mustRender(t, name)) {
			if component(worker) != "worker" {
				continue
			}
			grace, err := time.ParseDuration(flagValue(worker, "grace"))
			must(t, err)
			if limit := time.Duration(*worker.Spec.TerminationGracePeriodSeconds) * time.Second; limit < grace+5*time.Second {
				t.Errorf("%s: Kubernetes kills a worker after %v, which stops within %v", name, limit, grace)
			}
		}
	}
}

// The probes use the endpoints of ddiff: liveness is the watchdog, and only readiness depends on NATS.
func TestProbes(t *testing.T) {
	for _, name := range examples(t) {
		for object, pod := range pods(t, mustRender(t, name)) {
			c := pod.Spec.Containers[0]
			if strings.HasSuffix(object, "-test") {
				continue
			}
			for path, probe := range map[string]*corev1.Probe{"/livez": c.LivenessProbe, "/readyz": c.ReadinessProbe, "/startupz": c.StartupProbe} {
				if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.StrVal != "probes" {
					t.Errorf("%s/%s: probe of %s is %+v", name, object, path, probe)
				}
			}
			ports := map[string]int32{}
			for _, p := range c.Ports {
				ports[p.Name] = p.ContainerPort
			}
			if got, want := flagValue(pod, "health-listen"), fmt.Sprintf(":%d", ports["probes"]); got != want {
				t.Errorf("%s/%s: --health-listen=%s, the port is %s", name, object, got, want)
			}
			if got, want := flagValue(pod, "metrics-listen"), fmt.Sprintf(":%d", ports["metrics"]); got != want {
				t.Errorf("%s/%s: --metrics-listen=%s, the port is %s", name, object, got, want)
			}
			if limit := time.Duration(c.StartupProbe.PeriodSeconds*c.StartupProbe.FailureThreshold) * time.Second; limit < 5*time.Minute {
				t.Errorf("%s/%s: %v for the start", name, object, limit)
			}
		}
	}
}

// program builds ddiff.
func program(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ddiff")
	build := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-o", file, "./cmd/ddiff")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build ddiff: %v\n%s", err, out)
	}
	return file
}

// ddiff accepts the arguments of every container: without NATS, or without the device, it ends with exit code 9 or 4, not with
// 2 for a wrong flag.
func TestArguments(t *testing.T) {
	ddiff := program(t)
	const noDevice, noNATS = 4, 9
	for _, name := range examples(t) {
		for object, pod := range pods(t, mustRender(t, name)) {
			role := component(pod)
			if role == "test" {
				continue
			}
			t.Run(name+"/"+object, func(t *testing.T) {
				arguments := []string{role}
				for _, argument := range pod.Spec.Containers[0].Args {
					switch {
					case strings.HasPrefix(argument, "--nats-wait="):
						continue
					case strings.HasPrefix(argument, "--store="): // the coordinator opens it first
						argument = "--store=" + t.TempDir()
					case strings.HasPrefix(argument, "--health-listen="), strings.HasPrefix(argument, "--metrics-listen="):
						argument = argument[:strings.LastIndex(argument, ":")] + "127.0.0.1:0"
					}
					arguments = append(arguments, argument)
				}
				cmd := exec.CommandContext(t.Context(), ddiff, arguments...)
				cmd.Env = append(os.Environ(), "DDIFF_NATS_URL=nats://127.0.0.1:1", "XDG_CACHE_HOME="+t.TempDir())
				out, err := cmd.CombinedOutput()
				if code := cmd.ProcessState.ExitCode(); code != noDevice && code != noNATS {
					t.Errorf("%v: %v\n%s", arguments, err, out)
				}
			})
		}
	}
}

// A policy applies to the pods of each component, and the peers of NATS include them.
func TestNetworkPolicies(t *testing.T) {
	for _, name := range examples(t) {
		all := mustRender(t, name)
		for object, pod := range pods(t, all) {
			selected := 0
			for _, o := range all {
				if o.GetKind() != "NetworkPolicy" {
					continue
				}
				var policy networkingv1.NetworkPolicy
				must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &policy))
				if matches(t, &policy.Spec.PodSelector, pod.Labels) {
					selected++
					for _, rule := range policy.Spec.Ingress {
						if len(rule.From) == 0 || len(rule.Ports) == 0 {
							t.Errorf("%s/%s: a rule admits every peer or port", name, policy.Name)
						}
					}
				}
				if strings.HasSuffix(policy.Name, "-nats") {
					if !matches(t, policy.Spec.Ingress[0].From[0].PodSelector, pod.Labels) {
						t.Errorf("%s: the policy of NATS refuses %s", name, object)
					}
					for _, rule := range policy.Spec.Ingress {
						for _, port := range rule.Ports {
							if port.Port.IntVal != 4222 && port.Port.IntVal != 6222 {
								t.Errorf("%s: the policy of NATS opens port %v", name, port.Port)
							}
						}
					}
				}
			}
			if selected != 1 {
				t.Errorf("%s: %d policies select %s, want 1", name, selected, object)
			}
		}
	}
}

// The pods may connect to the ports of the NATS servers, also to the default port of a host whose name ends in a digit.
func TestPortsOfNATS(t *testing.T) {
	for set, want := range map[string][]int32{
		"nats.enabled=true": {4222},
		"nats.enabled=false,queue.addresses={nats://nats-1,tls://10.0.0.5,nats://[fd00::1]}":          {4222},
		"nats.enabled=false,queue.addresses={tls://nats-1:5222,tls://nats-2:5222,tls://[fd00::1]:14}": {5222, 14},
	} {
		values := example(t, "bare-metal")
		must(t, strvals.ParseInto(set, values))
		var policy networkingv1.NetworkPolicy
		object := find(t, mustRenderValues(t, values), "NetworkPolicy", "-worker")
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &policy))
		var got []int32
		for _, port := range policy.Spec.Egress[1].Ports {
			got = append(got, port.Port.IntVal)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: ports %v, want %v", set, got, want)
		}
	}
}

// By default the pods of the chart authenticate at NATS, and workers connect to name servers, NATS and the store alone: not to the metadata of
// their machine.
func TestAttackDefaults(t *testing.T) {
	for address, port := range map[string]int32{
		"s3://results": 443, "s3://results?endpoint=https://s3.example.org": 443, "s3://results?endpoint=http://s3.example.org&region=x": 80,
		"s3://results?endpoint=https://s3.example.org:7070": 7070, "s3://results?endpoint=https%3A%2F%2Fs3.example.org%3a7070": 7070,
		"s3://results?endpoint=http%3A%2F%2Fs3.example.org": 80,
	} {
		values := example(t, "minimal")
		values["store"].(map[string]any)["address"] = address
		all := mustRenderValues(t, values)
		var policy networkingv1.NetworkPolicy
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(find(t, all, "NetworkPolicy", "-worker").Object, &policy))
		if !slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) || len(policy.Spec.Egress) != 3 {
			t.Fatalf("egress of workers: %+v", policy.Spec)
		}
		store := policy.Spec.Egress[2]
		if len(store.Ports) != 1 || store.Ports[0].Port.IntVal != port || len(store.To) != 3 || !slices.Contains(store.To[0].IPBlock.Except, "169.254.0.0/16") ||
			store.To[2].NamespaceSelector == nil { // a server in the cluster
			t.Errorf("%s: the rule of the store is %+v", address, store)
		}
		for object, pod := range pods(t, all) {
			key := "password" // on NATS
			if component(pod) == "test" {
				key = "token"
			}
			if !slices.ContainsFunc(pod.Spec.Containers[0].Env, func(e corev1.EnvVar) bool {
				return e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil && e.ValueFrom.SecretKeyRef.Key == key
			}) {
				t.Errorf("%s has no %s", object, key)
			}
		}
	}
}

func matches(t *testing.T, selector *metav1.LabelSelector, of map[string]string) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	must(t, err)
	return s.Matches(labels.Set(of))
}

// Deployments, budgets, services and monitors select the pods that they are for, and no others.
func TestSelectors(t *testing.T) {
	all := mustRender(t, "pools")
	templates := pods(t, all)
	for _, object := range all {
		var paths []string
		switch object.GetKind() {
		case "Deployment", "PodDisruptionBudget", "PodMonitor":
			paths = []string{"spec", "selector", "matchLabels"}
		case "Service":
			paths = []string{"spec", "selector"}
		default:
			continue
		}
		selector, _, err := unstructured.NestedStringMap(object.Object, paths...)
		must(t, err)
		for name, pod := range templates {
			got, want := labels.SelectorFromSet(selector).Matches(labels.Set(pod.Labels)), name == object.GetName()
			if object.GetKind() == "PodMonitor" { // of all pools
				want = component(pod) == "worker"
			}
			if got != want {
				t.Errorf("%s %s selects the pods of %s: %v", object.GetKind(), object.GetName(), name, got)
			}
		}
	}
}

// Every object has the recommended labels.
func TestLabels(t *testing.T) {
	for _, name := range examples(t) {
		for _, object := range mustRender(t, name) {
			for _, label := range []string{"name", "instance", "component", "version", "part-of", "managed-by"} {
				if object.GetLabels()["app.kubernetes.io/"+label] == "" {
					t.Errorf("%s: %s %s has no label %s", name, object.GetKind(), object.GetName(), label)
				}
			}
		}
	}
}

// With KEDA, the Deployment states no number of pods: an upgrade would reset it.
func TestScaledDeploymentHasNoReplicas(t *testing.T) {
	worker := find(t, mustRender(t, "eks-spot"), "Deployment", "-worker-default")
	var deployment appsv1.Deployment
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(worker.Object, &deployment))
	if deployment.Spec.Replicas != nil {
		t.Errorf("replicas is %d", *deployment.Spec.Replicas)
	}
}

// The scaler reads a metric that the leading coordinator has, and only it: a zero of another coordinator would hide its value.
func TestScalerReadsMetricOfLeader(t *testing.T) {
	table, err := os.ReadFile("../../docs/telemetry.md")
	must(t, err)
	triggers, _, err := unstructured.NestedSlice(find(t, mustRender(t, "eks-spot"), "ScaledObject", "-worker-default").Object, "spec", "triggers")
	if err != nil || len(triggers) != 1 {
		t.Fatalf("%d triggers: %v", len(triggers), err)
	}
	metadata := triggers[0].(map[string]any)["metadata"].(map[string]any)
	// KEDA 2.21 finds the endpoints of the service by the parts of the host (pkg/scalers/metrics_api_scaler.go).
	address, err := url.Parse(metadata["url"].(string))
	must(t, err)
	service := find(t, mustRender(t, "eks-spot"), "Service", "-coordinator")
	if parts := strings.Split(address.Host, "."); len(parts) < 3 || parts[0] != service.GetName() || parts[1] != service.GetNamespace() || address.Port() != "9090" {
		t.Errorf("KEDA reads %q as service and namespace", parts)
	}
	metric, pool, _ := strings.Cut(metadata["valueLocation"].(string), "{")
	if pool != `pool="default"}` {
		t.Errorf("KEDA reads the pool %s", pool)
	}
	for line := range strings.SplitSeq(string(table), "\n") {
		if strings.Contains(line, "`"+metric+"`") {
			if cells := strings.Split(line, "|"); len(cells) < 6 || strings.TrimSpace(cells[3]) != "gauge, `{item}`" || strings.TrimSpace(cells[4]) != "`pool`" || strings.TrimSpace(cells[5]) != "leader" {
				t.Errorf("%s is not a gauge of the leader by pool: %s", metric, line)
			}
			return
		}
	}
	t.Errorf("docs/telemetry.md has no metric %s", metric)
}
