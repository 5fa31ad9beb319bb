package serve

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"ddiff/api"
	"ddiff/coordinator/report/comparison"
	"ddiff/coordinator/report/result"
	"ddiff/coordinator/report/selection"
)

// addCompare adds the route of comparisons.
func (s *Server) addCompare() {
	add(s, api.Viewer, http.MethodGet, "/compare", "Compare two campaigns, paired by measurement, as ddiff compare --json", func(ctx context.Context, in *struct {
		A      string `query:"a" required:"true" maxLength:"64" pattern:"^[a-z0-9-]+$" doc:"Id of a campaign"`
		B      string `query:"b" required:"true" maxLength:"64" pattern:"^[a-z0-9-]+$" doc:"Id of the other campaign"`
		Metric string `query:"metric" default:"psnr" enum:"psnr,ssim,psnr_y,haarpsi,residual"`
	},
	) (json.RawMessage, error) {
		a, err := s.cfg.Backend.Output(ctx, in.A)
		if err != nil {
			return nil, err
		}
		b, err := s.cfg.Backend.Output(ctx, in.B)
		if err != nil {
			return nil, err
		}
		if err := s.reserve(ctx, largeBytes); err != nil {
			return nil, err
		}
		versus, err := comparison.Compare(result.Results(ctx, []result.Output{a}), result.Results(ctx, []result.Output{b}), nil, selection.First, in.Metric)
		if errors.Is(err, comparison.ErrNotComparable) {
			return nil, api.NewError(api.ErrInvalid, err.Error())
		}
		if err != nil {
			return nil, err
		}
		return json.Marshal(versus)
	}, func(op *huma.Operation) { op.Errors = append(op.Errors, http.StatusNotFound) })
}
