package telemetrytest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dashboard is the part of a Grafana dashboard that the tests read.
type dashboard struct {
	UID        string  `json:"uid"`
	Title      string  `json:"title"`
	Panels     []panel `json:"panels"`
	Links      []link  `json:"links"`
	Templating struct {
		List []variable `json:"list"`
	} `json:"templating"`
}

type panel struct {
	ID          int       `json:"id"`
	Type        string    `json:"type"`
	Title       string    `json:"title"`
	Description string    `json:"description"`
	Datasource  source    `json:"datasource"`
	Targets     []target  `json:"targets"`
	GridPos     rectangle `json:"gridPos"`
}

type target struct {
	Datasource source `json:"datasource"`
	Expr       string `json:"expr"`
	RefID      string `json:"refId"`
	Legend     string `json:"legendFormat"`
}

type source struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type rectangle struct{ X, Y, W, H int }

func (r rectangle) overlaps(o rectangle) bool {
	return r.X < o.X+o.W && o.X < r.X+r.W && r.Y < o.Y+o.H && o.Y < r.Y+r.H
}

type link struct {
	URL string `json:"url"`
}

type variable struct {
	Name  string          `json:"name"`
	Type  string          `json:"type"`
	Query json.RawMessage `json:"query"`
}

// dashboards reads all dashboards.
func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob("../../deploy/grafana/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboard: %v", err)
	}
	all := map[string]dashboard{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(data, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[filepath.Base(file)] = d
	}
	return all
}

// placeholder is a label in a legend.
var placeholder = regexp.MustCompile(`{{(\w+)}}`)

// definition is the query of a variable: label_values(METRIC, LABEL), of the chosen cluster or of all.
var definition = regexp.MustCompile(`^label_values\((\w+)(?:\{ddiff_cluster="\$cluster"\})?, (\w+)\)$`)

// substitute replaces the variables of Grafana in a query; it returns the names of the dashboard's own.
func substitute(query string) (replaced string, names []string) {
	replaced = strings.ReplaceAll(query, "$__rate_interval", "5m")
	name := regexp.MustCompile(`\$(\w+)`)
	for _, m := range name.FindAllStringSubmatch(replaced, -1) {
		names = append(names, m[1])
	}
	return name.ReplaceAllString(replaced, "x"), names
}

// TestDashboards: every query of a dashboard parses, names metrics, labels and values of ddiff, and every panel has a place.
func TestDashboards(t *testing.T) {
	series := inPrometheus(t)
	all := dashboards(t)
	var uids []string
	for _, d := range all {
		uids = append(uids, d.UID)
	}
	for file, d := range all {
		declared := map[string]bool{}
		for _, v := range d.Templating.List {
			declared[v.Name] = true
			if v.Type == "datasource" {
				continue
			}
			var query struct{ Query string }
			if err := json.Unmarshal(v.Query, &query); err != nil {
				t.Errorf("%s: variable %s: %v", file, v.Name, err)
			}
			m := definition.FindStringSubmatch(query.Query)
			if m == nil {
				t.Errorf("%s: variable %s: the query %q is not of the form label_values(METRIC, LABEL)", file, v.Name, query.Query)
			} else if err := checkQuery(series, "sum by ("+m[2]+") ("+m[1]+")"); err != nil {
				t.Errorf("%s: variable %s: %v", file, v.Name, err)
			}
		}
		for _, l := range d.Links {
			if uid := strings.TrimPrefix(l.URL, "/d/"); !slices.Contains(uids, uid) {
				t.Errorf("%s: the link %s leads to no dashboard", file, l.URL)
			}
		}
		ids := map[int]bool{}
		queries := 0
		for i, p := range d.Panels {
			if ids[p.ID] {
				t.Errorf("%s: two panels have the id %d", file, p.ID)
			}
			ids[p.ID] = true
			if g := p.GridPos; g.X < 0 || g.W <= 0 || g.H <= 0 || g.X+g.W > 24 {
				t.Errorf("%s: panel %q lies outside the 24 columns: %+v", file, p.Title, g)
			}
			for _, o := range d.Panels[:i] {
				if p.GridPos.overlaps(o.GridPos) {
					t.Errorf("%s: panels %q and %q overlap", file, p.Title, o.Title)
				}
			}
			if p.Type == "row" {
				continue
			}
			if p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
				t.Errorf("%s: panel %d has no title, description or query", file, p.ID)
			}
			refs := map[string]bool{}
			for _, q := range p.Targets {
				queries++
				if refs[q.RefID] {
					t.Errorf("%s: panel %q has two queries %s", file, p.Title, q.RefID)
				}
				refs[q.RefID] = true
				if want := (source{"prometheus", "${datasource}"}); q.Datasource != want || p.Datasource != want {
					t.Errorf("%s: panel %q: data source %+v, want %+v", file, p.Title, q.Datasource, want)
				}
				query, names := substitute(q.Expr)
				for _, n := range names {
					if !declared[n] {
						t.Errorf("%s: panel %q: the variable %s is not declared", file, p.Title, n)
					}
				}
				if err := checkQuery(series, query); err != nil {
					t.Errorf("%s: panel %q: %s: %v", file, p.Title, q.Expr, err)
				}
				if err := checkLeaders(query); err != nil {
					t.Errorf("%s: panel %q: %s: %v", file, p.Title, q.Expr, err)
				}
				if err := checkClusters(query); err != nil {
					t.Errorf("%s: panel %q: %s: %v", file, p.Title, q.Expr, err)
				}
				for _, m := range placeholder.FindAllStringSubmatch(q.Legend, -1) {
					if err := checkQuery(series, "sum by ("+m[1]+") ("+query+")"); err != nil {
						t.Errorf("%s: panel %q: the legend %q: %v", file, p.Title, q.Legend, err)
					}
				}
			}
		}
		t.Logf("%s: %d panels, %d queries", file, len(d.Panels), queries)
	}
}
