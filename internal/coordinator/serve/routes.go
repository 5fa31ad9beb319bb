package serve

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/serve/page"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// prefix is before the paths of the API.
const prefix = "/api/v1"

// anyone is the role of routes that need no token.
const anyone = api.Role("")

// The statuses that every route may answer, and those of some routes.
var always = []int{http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError, http.StatusServiceUnavailable}

// none is the input of a route without parameters.
type none struct{}

// body is the answer of a route in JSON.
type body[T any] struct{ Body T }

// add adds a route that answers with JSON.
func add[I, O any](s *Server, role api.Role, method, path, summary string, handle func(ctx context.Context, in *I) (O, error), change ...func(*huma.Operation)) {
	op := s.operation(role, method, path, summary, change...)
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*body[O], error) {
		out, err := handle(ctx, in)
		if err != nil {
			return nil, s.failed(ctx, op, err)
		}
		return &body[O]{out}, nil
	})
}

// failed returns the problem of an error, and logs an unexpected one.
func (s *Server) failed(ctx context.Context, op huma.Operation, err error) error {
	p := board.Problem(err)
	if p.Status == http.StatusInternalServerError && ctx.Err() == nil {
		s.cfg.Logger.Error("cannot answer a request", "route", op.OperationID, "reason", err)
	}
	return p
}

func (s *Server) operation(role api.Role, method, path, summary string, change ...func(*huma.Operation)) huma.Operation {
	name := strings.NewReplacer("{", "", "}", "", "...", "", "/", "-").Replace(strings.ToLower(method) + path)
	op := huma.Operation{
		Method: method, Path: path, OperationID: name, Summary: summary, Errors: slices.Clone(always), MaxBodyBytes: maxBody,
		RejectUnknownQueryParameters: true, Extensions: map[string]any{"x-role": string(role)},
	}
	if role != anyone {
		op.Errors = append(op.Errors, http.StatusUnauthorized, http.StatusForbidden)
		op.Security = []map[string][]string{{"token": {}}}
		op.Middlewares = huma.Middlewares{func(ctx huma.Context, next func(huma.Context)) {
			if p := identityOf(ctx.Context()).may(role); p != nil {
				_, w := humago.Unwrap(ctx)
				writeProblem(w, p)
				return
			}
			next(ctx)
		}}
	} else {
		op.Security = []map[string][]string{}
	}
	if strings.Contains(path, "{") {
		op.Errors = append(op.Errors, http.StatusNotFound)
	}
	if method != http.MethodGet {
		op.Errors = append(op.Errors, http.StatusForbidden, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusRequestTimeout)
	}
	for _, f := range change {
		f(&op)
	}
	slices.Sort(op.Errors)
	op.Errors = slices.Compact(op.Errors)
	return op
}

func status(code int) func(*huma.Operation) {
	return func(op *huma.Operation) { op.DefaultStatus = code }
}

// content sets the media types of a success that is no JSON.
func content(types ...string) func(*huma.Operation) {
	return func(op *huma.Operation) {
		media := map[string]*huma.MediaType{}
		for _, t := range types {
			media[t] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
		}
		op.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: media}}
	}
}

// InCampaign is the parameter of routes below a campaign.
type InCampaign struct {
	ID string `path:"id" maxLength:"64" pattern:"^[a-z0-9-]+$" doc:"Id of the campaign"`
}

// InItem are the parameters of routes below an item.
type InItem struct {
	InCampaign
	Item string `path:"item" pattern:"^[0-9a-f]{64}$" doc:"Id of the item"`
}

// register adds all routes. The table of docs/api.md has the same rows.
func (s *Server) register() error {
	outer := http.NewServeMux()
	// The standard form escapes < and >, unlike huma's.
	format := huma.Format{Marshal: func(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }, Unmarshal: json.Unmarshal}
	config := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0", Info: &huma.Info{Title: "ddiff", Version: s.cfg.Version, Description: "Campaigns, items and workers of a cluster."},
			Components: &huma.Components{
				Schemas: huma.NewMapRegistry("#/components/schemas/", schemaName),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"token": {Type: "http", Scheme: "bearer"}, // a browser has a session, which needs its door
				},
			},
		},
		Formats: map[string]huma.Format{"application/json": format, "json": format}, DefaultFormat: "application/json",
	}
	// These types write their JSON themselves.
	for _, t := range []reflect.Type{reflect.TypeFor[manifest.Spec](), reflect.TypeFor[item.Item](), reflect.TypeFor[item.Result]()} {
		config.Components.Schemas.RegisterTypeAlias(t, reflect.TypeFor[map[string]any]())
	}
	s.api = humago.NewWithPrefix(outer, prefix, config)

	s.addCampaigns()
	s.addItems()
	s.addArchive()
	s.addReport()
	s.addCompare()
	s.addFleet()
	s.addCallers()
	s.addSession()
	s.addLogin()

	document := s.api.OpenAPI()
	for path := range maps.Clone(document.Paths) {
		if plain := strings.ReplaceAll(path, "...}", "}"); plain != path {
			document.Paths[plain] = document.Paths[path]
			delete(document.Paths, path)
		}
	}
	data, err := json.MarshalIndent(document, "", " ")
	if err != nil {
		return err
	}
	openapi := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(data) // the client is gone
	}
	outer.HandleFunc("GET /openapi.json", openapi)
	outer.HandleFunc("GET "+prefix+"/openapi.json", openapi)
	s.mux.Handle("/openapi.json", tagged(outer))
	s.mux.Handle(prefix+"/", tagged(explained(outer)))
	for path, check := range s.cfg.Health {
		s.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			if check() != nil {
				http.Error(w, "not ready; --health-listen and the log have the reason", http.StatusServiceUnavailable)
				return
			}
			_, _ = io.WriteString(w, "ok\n") // the client is gone
		})
	}
	front, err := page.Handler()
	s.mux.Handle("/", front)
	return err
}

// explained answers requests for unknown routes and methods with a problem.
func explained(routes *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, route := routes.Handler(r); route != "" {
			routes.ServeHTTP(w, r)
			return
		}
		b := &buffer{header: w.Header()}
		routes.ServeHTTP(b, r)
		p := api.NewError(api.ErrNotFound, "no such route; see /openapi.json")
		if b.status == http.StatusMethodNotAllowed {
			p = &api.Error{Title: http.StatusText(b.status), Status: b.status, Detail: "no such method of this route; it has " + b.header.Get("Allow")}
		}
		writeProblem(w, p)
	})
}

// schemaName names a schema after the type, with the package of another's.
func schemaName(t reflect.Type, hint string) string {
	return strings.ReplaceAll(huma.DefaultSchemaNamer(t, hint), "Body", "")
}

// Document returns the OpenAPI document.
func (s *Server) Document() *huma.OpenAPI { return s.api.OpenAPI() }
