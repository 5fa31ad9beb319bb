package testbed

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// checkDashboards checks that each query of the dashboards returns values on Prometheus during the campaign.
func (w *watched) checkDashboards(ctx context.Context, campaign string, begin time.Time) {
	root, err := ModuleRoot(ctx)
	if err != nil {
		w.fail("dashboards", err)
		return
	}
	files, err := filepath.Glob(filepath.Join(root, "deploy", "grafana", "*.json"))
	if err != nil || len(files) == 0 {
		w.fail("dashboards", fmt.Errorf("no dashboard: %v", err)) //nolint:errorlint // it may be nil
	}
	variables := strings.NewReplacer("$__rate_interval", "5s", "$campaign", campaign, "$instance", ".+", "$cluster", "")
	for _, file := range files {
		var d struct {
			Panels []struct {
				Type    string `json:"type"`
				Title   string `json:"title"`
				Targets []struct {
					Expr string `json:"expr"`
				} `json:"targets"`
			} `json:"panels"`
		}
		data, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, &d)
		}
		if err != nil {
			w.fail("dashboards", err)
			continue
		}
		answered := 0
		for _, p := range d.Panels {
			for _, t := range p.Targets {
				all, err := w.prometheus.series(ctx, variables.Replace(t.Expr), begin, time.Now())
				if err != nil {
					w.fail("dashboards", fmt.Errorf("%s: panel %q: %w", filepath.Base(file), p.Title, err))
					continue
				}
				has := slices.ContainsFunc(all, func(s sample) bool {
					return slices.ContainsFunc(s.Values, func(v point) bool { return !math.IsNaN(v.value) })
				})
				if has {
					answered++
				} else {
					w.fail("dashboards", fmt.Errorf("%s: panel %q: %s has no value", filepath.Base(file), p.Title, t.Expr))
				}
			}
		}
		say("%s: %d queries have values", filepath.Base(file), answered)
	}
}
