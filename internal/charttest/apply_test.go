package charttest

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// resource returns the client of an object's kind in its namespace.
func (s *apiServer) resource(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := s.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	client := s.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return client.Namespace(object.GetNamespace()), nil
	}
	return client, nil
}

// knows returns an error if the server does not serve a kind, as in PodMonitor.monitoring.coreos.com.
func (s *apiServer) knows(kind string) error {
	_, err := s.mapper.RESTMapping(schema.ParseGroupKind(kind))
	return err
}

// apply applies an object on the server's side, and refuses unknown and duplicate fields.
func (s *apiServer) apply(ctx context.Context, object *unstructured.Unstructured, dryRun ...string) error {
	client, err := s.resource(object)
	if err != nil {
		return err
	}
	data, err := json.Marshal(object)
	if err != nil {
		return err
	}
	force := true
	_, err = client.Patch(ctx, object.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{
		FieldManager: "charttest", FieldValidation: metav1.FieldValidationStrict, Force: &force, DryRun: dryRun,
	})
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// get reads an object.
func (s *apiServer) get(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	client, err := s.resource(object)
	if err != nil {
		return nil, err
	}
	return client.Get(ctx, object.GetName(), metav1.GetOptions{})
}

// namespace creates a namespace with the Pod Security Standard `restricted`: it refuses other pods, and warns about
// objects that would make them.
func (s *apiServer) namespace(ctx context.Context, name string) error {
	labels := map[string]any{}
	for _, mode := range []string{"enforce", "warn", "audit"} {
		labels["pod-security.kubernetes.io/"+mode] = "restricted"
	}
	return s.apply(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "labels": labels},
	}})
}
