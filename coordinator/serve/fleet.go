package serve

import (
	"context"
	"encoding/json"
	"net/http"

	"ddiff/api"
)

// addFleet adds the routes of workers, coordinators and the catalogue.
func (s *Server) addFleet() {
	b := s.cfg.Backend
	add(s, api.Viewer, http.MethodGet, "/workers", "List the workers with their last heartbeats", func(ctx context.Context, _ *none) (api.Workers, error) {
		return b.Workers(ctx)
	})
	add(s, api.Viewer, http.MethodGet, "/cluster", "Get coordinators, streams and waiting work", func(ctx context.Context, _ *none) (api.Cluster, error) {
		return b.Cluster(ctx)
	})
	add(s, api.Viewer, http.MethodGet, "/tasks", "List the tasks and presets, as ddiff tasks --json", func(context.Context, *none) (json.RawMessage, error) {
		return s.cfg.Tasks, nil
	})
	add(s, api.Viewer, http.MethodGet, "/methods", "List the methods with their parameters, as ddiff methods --json", func(context.Context, *none) (json.RawMessage, error) {
		return s.cfg.Methods, nil
	})
}
