package table

import (
	"cmp"
	"slices"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/entry"
	"ddiff/internal/report/statistic"
	"ddiff/internal/report/sweep"
	"ddiff/internal/restore/metric"
)

// Column is one of the list of columns (columns), from which all tables take headings, cells, units and orders. A figure of a table of means is the mean
// of the column of results.csv with the same ID.
type Column struct {
	// ID is the heading in results.csv, Name that of the other tables, Unit the unit of a figure, TeX the heading in LaTeX if it is not the name.
	ID, Name, Unit, TeX string
	// Label: the column has text.
	Label bool
	// Decimals are the most of a mean; Signed: a plus is written.
	Decimals int
	Signed   bool
	// Rough: a page has two digits of a mean.
	Rough bool
	// Same: all rows have the same, so that a narrow page leaves the column out.
	Same bool
	// Further: a page shows the column on demand. Alone: without intervals.
	Further, Alone bool

	// figure is the name of the figure of an item and of a row, of which the cells are; empty: the column has none. count: it is a whole number.
	figure string
	count  bool
	// item is the cell of an item if the column has no figure: a string, an int64, a uint64, a float64, or a pointer to a number, nil for an undefined one;
	// nil: results.csv lacks the column. exact: CSV has more than six digits of it.
	item  func(e *entry.Entry) any
	exact bool
	// shown reports whether tables of means have the column; nil: always. text is its cell if it is a label.
	shown func(s *aggregate.Summary) bool
	text  func(r *aggregate.Row) string
	// half: the cell is half of the mean's interval. chosen: the rule for runs decides the figure.
	half, chosen bool
	// merit makes the best figure of a problem bold; nil for none.
	merit func(mean float64) float64
}

// columns is the list of all columns, in the order of every table. Versions is the text of the column metrics, further are metrics beside those of
// [metric.Builtin]. Six digits suffice to recompute every mean, and differences between runtimes are larger.
func columns(further []string, versions string) []Column {
	varying := func(of func(v aggregate.Varying) bool) func(*aggregate.Summary) bool {
		return func(s *aggregate.Summary) bool { return of(s.Varying) }
	}
	text := func(id string, of func(e *entry.Entry) string) Column {
		return Column{ID: id, Label: true, item: func(e *entry.Entry) any { return of(e) }}
	}
	label := func(id, name string, shown func(*aggregate.Summary) bool, of func(r *aggregate.Row) string, item func(e *entry.Entry) any) Column {
		return Column{ID: id, Name: name, Label: true, shown: shown, text: of, item: item, exact: true}
	}
	out := []Column{
		text("item", func(e *entry.Entry) string { return e.ID }),
		text("image", func(e *entry.Entry) string { return e.Name }),
		label("task", "task", nil, func(r *aggregate.Row) string { return r.Task }, func(e *entry.Entry) any { return e.Task }),
		label("params", "parameters", varying(func(v aggregate.Varying) bool { return v.Params }), func(r *aggregate.Row) string { return r.VaryingParams },
			func(e *entry.Entry) any { return e.Params }),
		label("sigma", "σ", varying(func(v aggregate.Varying) bool { return v.Sigma }), sigmaOf,
			func(e *entry.Entry) any { return e.Noise }),
		label("photons", "photons", varying(func(v aggregate.Varying) bool { return v.Photons }), func(r *aggregate.Row) string { return r.PhotonsText() },
			func(e *entry.Entry) any {
				if e.Photons == 0 {
					return (*float64)(nil)
				}
				return &e.Photons
			}),
		label("size", "size", varying(func(v aggregate.Varying) bool { return v.Size }), func(r *aggregate.Row) string { return r.Size },
			func(e *entry.Entry) any {
				if e.Width == 0 {
					return ""
				}
				return sweep.Pixels(e.Width, e.Height)
			}),
		label("prior", "prior", varying(func(v aggregate.Varying) bool { return v.Prior }), func(r *aggregate.Row) string { return sweep.ShortPrior(r.Prior) },
			func(e *entry.Entry) any { return e.Prior }),
		label("preset", "preset", varying(func(v aggregate.Varying) bool { return v.Preset }), func(r *aggregate.Row) string { return r.Preset },
			func(e *entry.Entry) any { return e.Preset }),
		label("method", "method", nil, func(r *aggregate.Row) string { return r.Method }, func(e *entry.Entry) any { return e.Method }),
		label("settings", "settings", varying(func(v aggregate.Varying) bool { return v.Settings }), func(r *aggregate.Row) string { return r.VaryingSettings },
			func(e *entry.Entry) any { return e.Settings }),
		label("precision", "precision", varying(func(v aggregate.Varying) bool { return v.Precision }), (*aggregate.Row).PrecisionText,
			func(e *entry.Entry) any { return cmp.Or(e.Used, string(e.Precision)) }),
		{ID: "run", item: func(e *entry.Entry) any { return int64(e.Run) }},
		{ID: "seed", item: func(e *entry.Entry) any { return e.Seed }},
		text("outcome", func(e *entry.Entry) string { return string(e.Outcome) }),
		text("reason", func(e *entry.Entry) string { return e.Reason }),
		{ID: imagesID, Name: "images", TeX: "$n$"},
	}
	for _, m := range metric.Builtin() {
		out = append(out, scoreColumn(m))
		if m.Name == metric.NamePSNR {
			out = append(out,
				Column{ID: "psnr_half", Name: "±95%", Unit: m.Unit, TeX: `$\pm$95\,\%`, Decimals: m.Decimals, half: true, figure: m.Name},
				Column{ID: entry.Baseline, Name: "degraded", Unit: m.Unit, Further: true, Alone: true, Decimals: m.Decimals, figure: entry.Baseline},
				Column{ID: entry.Gain, Name: "gain", Unit: m.Unit, Decimals: m.Decimals, Signed: true, chosen: true, figure: entry.Gain})
		}
	}
	out = append(out, Column{ID: entry.Ratio, figure: entry.Ratio})
	for _, name := range further {
		out = append(out, scoreColumn(metric.Describe(name)))
	}
	out = append(out, Column{ID: entry.Seconds, Name: "time", Unit: "s", TeX: "Time (s)", Alone: true, Rough: true, Decimals: 2, figure: entry.Seconds})
	// Tables of means have a kind of work if a row knows it, and work of an autoencoder only if a row uses one.
	names := []string{"network", "backward", "operator", "autoencoder", "its backward"}
	for k, id := range entry.CostNames() {
		out = append(out, Column{ID: id, Name: names[k], Further: true, Alone: true, figure: id, count: true, shown: func(s *aggregate.Summary) bool {
			return slices.ContainsFunc(s.Rows, func(r aggregate.Row) bool { return r.Means[id].N > 0 && (k < 3 || r.Means[id].Mean > 0) })
		}})
	}
	return append(out,
		Column{ID: "steps", item: func(e *entry.Entry) any { return count(e, float64(e.Steps)) }},
		text("fit", func(e *entry.Entry) string { return e.Fit }),
		text("metrics", ofDone(func(*entry.Entry) string { return versions })),
		text("warnings", ofDone(func(e *entry.Entry) string { return e.Warnings })),
		text("sigma_estimated", (*entry.Entry).EstimatedText))
}

// imagesID is the column with the number of images of a row.
const imagesID = "images"

// mean is the cell of a row.
func (c *Column) mean(r *aggregate.Row) statistic.Estimate {
	if c.ID == imagesID {
		return statistic.Estimate{N: r.Images, Mean: float64(r.Images)}
	}
	return r.Means[c.figure]
}

// ofItem is the cell of an item. Items that are not done have no figures.
func (c *Column) ofItem(e *entry.Entry) any {
	switch {
	case c.item != nil:
		return c.item(e)
	case c.count:
		return count(e, e.Of(c.figure))
	}
	return statistic.Optional(e.Of(c.figure))
}

// sigmaOf is empty for items that failed before their settings were known.
func sigmaOf(r *aggregate.Row) string {
	if r.Size == "" {
		return ""
	}
	return r.Sigma.String()
}

// ofDone is a text that only finished items have.
func ofDone(of func(e *entry.Entry) string) func(e *entry.Entry) string {
	return func(e *entry.Entry) string {
		if !e.Done() {
			return ""
		}
		return of(e)
	}
}

// count is a whole number of a finished item.
func count(e *entry.Entry, v float64) *int64 {
	if !e.Done() || !statistic.Defined(v) {
		return nil
	}
	return new(int64(v))
}

// scoreColumn has the scores of a metric. Tables of means show the main ones, and those that were computed after solving.
func scoreColumn(m metric.Metric) Column {
	c := Column{
		ID: m.Name, Name: m.Title, Unit: m.Unit, Decimals: m.Decimals, chosen: true, figure: m.Name,
		Further: !slices.Contains([]string{metric.NamePSNR, metric.NameSSIM}, m.Name) && m.Main,
		shown: func(s *aggregate.Summary) bool {
			_, scored := s.MetricIDs[m.Name]
			return m.Main || scored && slices.Contains(s.ScoredLater, m.Name)
		},
	}
	if m.Better == metric.Higher || m.Better == metric.Lower { // the mean of distances to zero on both sides of it says nothing
		c.merit = m.Merit
	}
	return c
}

// Interval reports whether the cells are halves of intervals, which a page has beside their means.
func (c *Column) Interval() bool { return c.half }

// Heading is the name with a capital letter.
func (c *Column) Heading() string { return capital(c.Name) }

// meanColumns are those of a table of means; all: with every metric of the summary.
func meanColumns(s *aggregate.Summary, all bool) []Column {
	var further []string
	for name := range s.MetricIDs {
		if _, builtin := metric.Builtin().Find(name); !builtin {
			further = append(further, name)
		}
	}
	slices.Sort(further)
	return slices.DeleteFunc(columns(further, ""), func(c Column) bool {
		_, scored := s.MetricIDs[c.ID]
		return c.Name == "" || c.shown != nil && !c.shown(s) && (!all || !scored)
	})
}

// cell is the text of the mean of a row; missing stands for an undefined figure.
func (c *Column) cell(e statistic.Estimate, missing string) string {
	switch {
	case c.half:
		return Half(e, c.Decimals, missing)
	case c.Signed:
		return SignedMean(e, c.Decimals, missing)
	}
	return Mean(e, c.Decimals, missing)
}
