package charttest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestServer gives the objects of the chart to a Kubernetes API server.
func TestServer(t *testing.T) {
	s := startServer(t)
	s.define(t)
	// bare-metal names it.
	if err := s.apply(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": map[string]any{"name": "nvidia"}, "handler": "nvidia",
	}}); err != nil {
		t.Fatal(err)
	}
	t.Run("Accepted", func(t *testing.T) { testAccepted(t, s) })
	t.Run("Releases", func(t *testing.T) { testReleases(t, s) })
	t.Run("Refused", func(t *testing.T) { testRefused(t, s) })
	t.Run("NATS", func(t *testing.T) { testNATS(t, s) })
}

// testAccepted applies every object of every values file, and the pods that the controllers would make of them.
func testAccepted(t *testing.T, s *apiServer) {
	values, applied, accepted := 0, 0, 0
	for _, name := range examples(t) {
		values++
		must(t, s.namespace(t.Context(), name))
		for _, object := range mustRender(t, name) {
			object.SetNamespace(name)
			applied++
			if err := s.accept(t, object); err != nil {
				t.Errorf("%s: %v", name, err)
			} else {
				accepted++
			}
		}
	}
	fmt.Printf("values=%d objects=%d accepted=%d\n", values, applied, accepted)
}

// testReleases applies two releases of one name and three pools in two namespaces.
func testReleases(t *testing.T, s *apiServer) {
	for _, space := range []string{"first", "second"} {
		must(t, s.namespace(t.Context(), space))
		files, err := renderIn(loadChart(t), example(t, "pools"), space)
		must(t, err)
		all, err := objects(files)
		must(t, err)
		for _, object := range all {
			if object.GetNamespace() != space {
				t.Errorf("%s %s is in the namespace %q", object.GetKind(), object.GetName(), object.GetNamespace())
			}
			must(t, s.accept(t, object))
		}
	}
}

// accept applies an object and its pod. A warning is an error.
func (s *apiServer) accept(t *testing.T, object *unstructured.Unstructured) error {
	pod, err := podOf(object)
	if err != nil {
		return err
	}
	if err := s.apply(t.Context(), object); err != nil {
		return err
	}
	if pod != nil {
		if err := s.apply(t.Context(), pod, "All"); err != nil {
			return err
		}
	}
	if all := s.warnings.take(); len(all) > 0 {
		return fmt.Errorf("%s %s: warning: %s", object.GetKind(), object.GetName(), strings.Join(all, "; "))
	}
	return nil
}

// podOf returns the pod that a controller makes of an object, or nil.
func podOf(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	template, err := podTemplate(object)
	if template == nil || err != nil {
		return nil, err
	}
	claims, _, err := unstructured.NestedSlice(object.Object, "spec", "volumeClaimTemplates")
	if err != nil {
		return nil, err
	}
	for _, claim := range claims {
		name, _, err := unstructured.NestedString(claim.(map[string]any), "metadata", "name")
		if err != nil {
			return nil, err
		}
		template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(template)
	if err != nil {
		return nil, err
	}
	pod := &unstructured.Unstructured{Object: content}
	pod.SetAPIVersion("v1")
	pod.SetKind("Pod")
	pod.SetName(object.GetName() + "-pod")
	pod.SetNamespace(object.GetNamespace())
	return pod, nil
}

// testRefused checks that the server notices mistakes: each changes one field of an accepted object.
func testRefused(t *testing.T, s *apiServer) {
	const space = "mistakes"
	must(t, s.namespace(t.Context(), space))
	for _, test := range []struct {
		file, kind, suffix string
		value              any
		path               []string
		want               string
	}{
		{"minimal", "Deployment", "-worker-default", 1, []string{"spec", "replica"}, "field not declared in schema"},
		{"minimal", "Deployment", "-worker-default", "two", []string{"spec", "replicas"}, "expected numeric"},
		{"minimal", "Deployment", "-worker-default", "other", []string{"spec", "selector", "matchLabels", "app.kubernetes.io/name"}, "`selector` does not match template `labels`"},
		{"minimal", "Deployment", "-worker-default", int64(-1), []string{"spec", "template", "spec", "terminationGracePeriodSeconds"}, "terminationGracePeriodSeconds"},
		{"minimal", "Deployment", "-worker-default", true, []string{"spec", "template", "spec", "hostNetwork"}, "restricted"},
		{"minimal", "Deployment", "-coordinator", false, []string{"spec", "template", "spec", "securityContext", "runAsNonRoot"}, "restricted"},
		{"minimal", "Deployment", "-coordinator", "3Gb", []string{"spec", "template", "spec", "containers", "0", "resources", "limits", "memory"}, "quantities must match"},
		{"minimal", "Deployment", "-coordinator", "nowhere", []string{"spec", "template", "spec", "containers", "0", "volumeMounts", "0", "name"}, "Not found"},
		{"minimal", "PodDisruptionBudget", "-coordinator", int64(1), []string{"spec", "minAvailable"}, "cannot be both set"},
		{"minimal", "NetworkPolicy", "-worker", []any{"Inbound"}, []string{"spec", "policyTypes"}, "policyTypes"},
		{"eks-spot", "ScaledObject", "-worker-default", int64(1), []string{"spec", "minReplicas"}, "field not declared in schema"},
		{"eks-spot", "ScaledObject", "-worker-default", "many", []string{"spec", "maxReplicaCount"}, "expected numeric"},
		{"eks-spot", "ScaledObject", "-worker-default", nil, []string{"spec", "scaleTargetRef"}, "scaleTargetRef"},
		{"eks-spot", "PodMonitor", "-worker", "soon", []string{"spec", "podMetricsEndpoints", "0", "interval"}, "interval"},
		{"eks-spot", "ServiceMonitor", "-coordinator", "x", []string{"spec", "endpoints", "0", "prot"}, "field not declared in schema"},
		{"eks-spot", "PrometheusRule", "-ddiff", "a minute", []string{"spec", "groups", "0", "rules", "0", "for"}, "for"},
		{"gke-spot", "ScaledJob", "-worker-default", int64(3), []string{"spec", "jobTargetRef", "paralelism"}, "field not declared in schema"},
	} {
		t.Run(test.kind+"/"+strings.Join(test.path, "."), func(t *testing.T) {
			s.warnings.take()
			object := find(t, mustRender(t, test.file), test.kind, test.suffix)
			object.SetNamespace(space)
			if err := s.accept(t, object); err != nil {
				t.Fatalf("before the mistake: %v", err)
			}
			must(t, set(object.Object, test.path, test.value))
			err := s.accept(t, object)
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("refused with %v, want %q", err, test.want)
			}
		})
	}
}

// set changes a field; a number selects an element of a list, nil removes the field.
func set(object any, path []string, value any) error {
	last := len(path) == 1
	switch object := object.(type) {
	case map[string]any:
		if last && value == nil {
			delete(object, path[0])
			return nil
		}
		if last {
			object[path[0]] = value
			return nil
		}
		return set(object[path[0]], path[1:], value)
	case []any:
		var i int
		if _, err := fmt.Sscan(path[0], &i); err != nil || i >= len(object) {
			return fmt.Errorf("no element %s", path[0])
		}
		return set(object[i], path[1:], value)
	}
	return errors.New("no field " + path[0])
}
