package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/record"
	"ddiff/internal/report/comparison"
	"ddiff/internal/report/result"
	"ddiff/internal/report/selection"
	"ddiff/internal/restore/metric"
	"ddiff/restore/item"
)

// order has the settings of a submission as query parameters, and the campaign file.
type order struct {
	DryRun      bool            `query:"dry_run" doc:"Only check the campaign, and count its items"`
	Output      string          `query:"output" maxLength:"500" doc:"Folder for the results below the cluster's store; without the role admin it begins with the owner and a slash"`
	Priority    record.Priority `query:"priority" enum:"high,normal,low" doc:"Class that is served before all lower ones, by default normal; high needs the role admin"`
	Weight      int             `query:"weight" minimum:"1" maximum:"1000" doc:"Share within the class, by default 1"`
	Canary      int             `query:"canary" minimum:"0" maximum:"1000000" default:"2" doc:"Number of items to run before the others"`
	PriorSHA256 string          `query:"prior_sha256" pattern:"^([0-9a-f]{64})?$" doc:"Digest that the prior must have"`
	Operators   []string        `query:"operator,explode" doc:"SHA256=PATH of an operator file; another file at the path then rejects the campaign"`
	Content     string          `header:"Content-Type"`
	RawBody     []byte          `contentType:"application/yaml"`
}

// submitted is the answer to a submission or to its check.
type submitted struct {
	Status int
	Body   any
}

func (s *Server) addCampaigns() {
	b := s.cfg.Backend
	add(s, api.Viewer, http.MethodGet, "/campaigns", "List the campaigns", func(ctx context.Context, in *struct {
		Archived bool `query:"archived" doc:"Also list archived campaigns"`
	},
	) (api.Campaigns, error) {
		return b.Campaigns(ctx, in.Archived)
	})
	s.addSubmit()
	add(s, api.Viewer, http.MethodGet, "/campaigns/{id}", "Get a campaign and its status", func(ctx context.Context, in *InCampaign) (record.CampaignStatus, error) {
		return b.Campaign(ctx, in.ID)
	})
	want := func(verb, summary string, wanted record.Wanted) {
		add(s, api.Submitter, http.MethodPost, "/campaigns/{id}/"+verb, summary, func(ctx context.Context, in *InCampaign) (api.Controlled, error) {
			return s.want(ctx, in.ID, wanted)
		})
	}
	want("pause", "Publish no more items; items in flight finish", record.WantPause)
	want("resume", "Continue a paused, cancelled or rejected campaign", record.WantRun)
	add(s, api.Submitter, http.MethodPost, "/campaigns/{id}/cancel", "Remove the waiting items", func(ctx context.Context, in *struct {
		InCampaign
		Now bool `query:"now" doc:"Also stop items in flight"`
	},
	) (api.Controlled, error) {
		if in.Now {
			return s.want(ctx, in.ID, record.WantCancelNow)
		}
		return s.want(ctx, in.ID, record.WantCancel)
	})
	add(s, api.Submitter, http.MethodPatch, "/campaigns/{id}", "Change settings of a campaign; missing ones stay", func(ctx context.Context, in *struct {
		InCampaign
		Body api.Change
	},
	) (api.Change, error) {
		if s.cfg.Controller == nil {
			return api.Change{}, errReadOnly()
		}
		return s.cfg.Controller.Change(ctx, in.ID, in.Body)
	})
	add(s, api.Submitter, http.MethodPost, "/campaigns/{id}/retry", "Run items again", func(ctx context.Context, in *struct {
		InCampaign
		Key  string `header:"Idempotency-Key" maxLength:"200" doc:"Equal requests with one key have one effect"`
		Body api.Retry
	},
	) (api.Retried, error) {
		if s.cfg.Controller == nil {
			return api.Retried{}, errReadOnly()
		}
		return s.cfg.Controller.Retry(ctx, in.ID, keyOf(ctx, in.ID, "retry", in.Key, in.Body), in.Body)
	})
	add(s, api.Submitter, http.MethodPost, "/campaigns/{id}/append", "Add rows to a campaign that has read its dataset", func(ctx context.Context, in *struct {
		InCampaign
		Key  string `header:"Idempotency-Key" maxLength:"200" doc:"Equal requests with one key have one effect"`
		Body api.Append
	},
	) (api.Appended, error) {
		if s.cfg.Controller == nil {
			return api.Appended{}, errReadOnly()
		}
		return s.cfg.Controller.Append(ctx, in.ID, keyOf(ctx, in.ID, "append", in.Key, in.Body), in.Body)
	})
	add(s, api.Submitter, http.MethodDelete, "/campaigns/{id}", "Delete a campaign that has ended", func(ctx context.Context, in *struct {
		InCampaign
		Results bool `query:"results" doc:"Also delete results that no other campaign refers to"`
		DryRun  bool `query:"dry_run" doc:"Only say what would be deleted"`
	},
	) (api.Deleted, error) {
		if s.cfg.Controller == nil {
			return api.Deleted{}, errReadOnly()
		}
		return s.cfg.Controller.Delete(ctx, in.ID, in.Results, in.DryRun)
	})
	add(s, api.Viewer, http.MethodGet, "/campaigns/{id}/logs", "Get the log lines of attempts", func(ctx context.Context, in *struct {
		InCampaign
		Item string `query:"item" maxLength:"64" pattern:"^[0-9a-f]*$" doc:"Id of an item, or its beginning"`
	},
	) (api.Logs, error) {
		return b.Logs(ctx, in.ID, in.Item)
	})
	s.addEvents()
}

// keyOf is the id of a command that a caller sends with a key of its own; empty without one. Another request with the key is another command.
func keyOf(ctx context.Context, campaign, verb, key string, request any) string {
	if key == "" {
		return ""
	}
	body, _ := json.Marshal(request) // of texts and flags
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %q %s", identityOf(ctx).token.ID, campaign, verb, key, body))
	return hex.EncodeToString(sum[:16])
}

// addSubmit adds the route that submits or checks a campaign.
func (s *Server) addSubmit() {
	op := s.operation(api.Submitter, http.MethodPost, "/campaigns", "Submit a campaign file", status(http.StatusCreated))
	op.SkipValidateBody = true // manifest reads it
	op.RequestBody = &huma.RequestBody{
		Required: true, Description: "A campaign file. Its paths are absolute, or addresses.",
		Content: map[string]*huma.MediaType{
			"application/yaml": {Schema: &huma.Schema{Type: huma.TypeString}}, "application/json": {Schema: &huma.Schema{}}, // any: a check says what is wrong
		},
	}
	registry := s.api.OpenAPI().Components.Schemas
	answer := func(about string, shape *huma.Schema) *huma.Response {
		return &huma.Response{Description: about, Content: map[string]*huma.MediaType{"application/json": {Schema: shape}}}
	}
	created := registry.Schema(reflect.TypeFor[api.Submitted](), true, "Submitted")
	op.Responses = map[string]*huma.Response{
		"200": answer("The campaign exists, or was only checked",
			&huma.Schema{OneOf: []*huma.Schema{created, registry.Schema(reflect.TypeFor[api.Checked](), true, "Checked")}}),
		"201": answer("The campaign was submitted", created),
	}
	huma.Register(s.api, op, func(ctx context.Context, in *order) (*submitted, error) {
		out, err := s.submit(ctx, in)
		if err != nil {
			return nil, s.failed(ctx, op, err)
		}
		return out, nil
	})
}

func (s *Server) submit(ctx context.Context, in *order) (*submitted, error) {
	if s.cfg.Controller == nil {
		return nil, errReadOnly()
	}
	caller := identityOf(ctx).token
	if folder, _, below := strings.Cut(in.Output, "/"); in.Output != "" && caller.Role != api.Admin && (folder != caller.Owner || !below) {
		return nil, api.NewError(api.ErrDenied, "output: "+in.Output+" may belong to another owner; choose a folder below "+caller.Owner+"/, or leave it out")
	}
	if err := board.CheckPriority(in.Priority, caller.Role); err != nil {
		return nil, err
	}
	o := api.Order{
		Output: in.Output, Priority: in.Priority, Weight: in.Weight, Canary: in.Canary, PriorSHA256: in.PriorSHA256, Owner: caller.Owner,
	}
	for _, text := range in.Operators {
		const digits = 2 * sha256.Size
		if len(text) < digits+2 || text[digits] != '=' {
			return nil, api.NewError(api.ErrInvalid, "operator: want SHA256=PATH")
		}
		o.Operators = append(o.Operators, record.OperatorFile{Path: text[digits+1:], SHA256: text[:digits]})
	}
	if in.DryRun {
		checked, err := s.cfg.Controller.Check(ctx, in.RawBody, o)
		return &submitted{http.StatusOK, checked}, err
	}
	done, err := s.cfg.Controller.Submit(ctx, in.RawBody, o)
	note(ctx, "campaign", done.ID, "created", done.Created)
	if done.Created {
		return &submitted{http.StatusCreated, done}, err
	}
	return &submitted{http.StatusOK, done}, err
}

// errReadOnly is the error of changes to finished outputs.
func errReadOnly() error {
	return api.NewError(api.ErrRefused, "this server shows outputs and has no cluster; nothing can be changed")
}

func (s *Server) want(ctx context.Context, id string, w record.Wanted) (api.Controlled, error) {
	if s.cfg.Controller == nil {
		return api.Controlled{}, errReadOnly()
	}
	return s.cfg.Controller.Want(ctx, id, w)
}

func (s *Server) addEvents() {
	stream := content("text/event-stream")
	all := s.operation(api.Viewer, http.MethodGet, "/events", "Follow campaigns and workers as server-sent events", stream)
	huma.Register(s.api, all, func(ctx context.Context, in *struct {
		Last string `header:"Last-Event-ID" doc:"Id of the last event that the client has; the newest states since then come first"`
	},
	) (*huma.StreamResponse, error) {
		return s.streamed(s.events(ctx, "", in.Last))
	})
	one := s.operation(api.Viewer, http.MethodGet, "/campaigns/{id}/events", "Follow a campaign as server-sent events", stream)
	huma.Register(s.api, one, func(ctx context.Context, in *struct {
		InCampaign
		Last string `header:"Last-Event-ID"`
	},
	) (*huma.StreamResponse, error) {
		if _, err := s.cfg.Backend.Campaign(ctx, in.ID); err != nil {
			return nil, s.failed(ctx, one, err)
		}
		return s.streamed(s.events(ctx, in.ID, in.Last))
	})
}

func (s *Server) streamed(r *huma.StreamResponse, err error) (*huma.StreamResponse, error) {
	if err != nil {
		return nil, board.Problem(err)
	}
	return r, nil
}

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
	add(s, api.Viewer, http.MethodGet, "/metrics", "List the metrics", func(context.Context, *none) (metric.Set, error) {
		return metric.Builtin(), nil
	})
}

func (s *Server) addCompare() {
	add(s, api.Viewer, http.MethodGet, "/compare", "Compare two campaigns, or two selections of one, paired by measurement, as ddiff compare --json", func(ctx context.Context, in *struct {
		A      string   `query:"a" required:"true" maxLength:"64" pattern:"^[a-z0-9-]+$" doc:"Id of a campaign"`
		B      string   `query:"b" required:"true" maxLength:"64" pattern:"^[a-z0-9-]+$" doc:"Id of the other campaign, or the same"`
		Metric string   `query:"metric" default:"psnr" maxLength:"64" pattern:"^[a-z0-9_]+$" doc:"Name of GET /metrics, or of a metric that ddiff score computed"`
		Where  []string `query:"where,explode" maxItems:"20" doc:"Only results with a property, as in task=hdr,denoise; all conditions must hold"`
		WhereA []string `query:"where_a,explode" maxItems:"20" doc:"The same for a alone"`
		WhereB []string `query:"where_b,explode" maxItems:"20" doc:"The same for b alone"`
	},
	) (json.RawMessage, error) {
		if err := s.reserve(ctx, largeBytes); err != nil {
			return nil, err
		}
		a, err := s.selected(ctx, in.A, slices.Concat(in.Where, in.WhereA))
		if err != nil {
			return nil, err
		}
		b, err := s.selected(ctx, in.B, slices.Concat(in.Where, in.WhereB))
		if err != nil {
			return nil, err
		}
		versus, err := comparison.Compare(a, b, nil, selection.First, in.Metric)
		for _, wrong := range []error{comparison.ErrNotComparable, result.ErrVersions, result.ErrFilter} {
			if errors.Is(err, wrong) {
				return nil, api.NewError(api.ErrInvalid, err.Error())
			}
		}
		if err != nil {
			return nil, err
		}
		return json.Marshal(versus)
	}, func(op *huma.Operation) { op.Errors = append(op.Errors, http.StatusNotFound) })
}

// selected returns the results of a campaign that match conditions.
func (s *Server) selected(ctx context.Context, id string, where []string) (iter.Seq2[item.Result, error], error) {
	filter, err := result.ParseFilter(where)
	if err != nil {
		return nil, api.NewError(api.ErrInvalid, err.Error())
	}
	o, err := s.cfg.Backend.Output(ctx, id)
	if err != nil {
		return nil, err
	}
	return filter.Select(result.Results(ctx, []result.Output{o})), nil
}
