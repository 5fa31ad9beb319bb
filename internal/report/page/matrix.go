package page

import (
	"cmp"
	"slices"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/entry"
	"ddiff/internal/report/statistic"
	"ddiff/internal/report/sweep"
	"ddiff/internal/restore/metric"
	"ddiff/restore/item"
)

// matrix has the PSNR of every measurement: a row of the table each, a column for each image.
type matrix struct {
	Images []matrixImage
	Rows   []matrixRow
}

// matrixImage is the image of a column; Truth is the path of its picture, empty without.
type matrixImage struct{ Name, Truth string }

type matrixRow struct {
	Label, Detail string
	Cells         []matrixCell
}

// matrixCell is a measurement, with the numbers of its runs combined; empty without.
type matrixCell struct{ ID, Path, PSNR, Gain string }

// The bounds of a matrix; beyond them the list of items serves.
const (
	maxMatrixImages = 12
	maxMatrixRows   = 48
)

// newMatrix returns nil beyond the bounds, without a score, and for images of one name.
func newMatrix(s aggregate.Summary) *matrix {
	m := &matrix{}
	at := make(map[string]int)
	byRow := make([]map[string]*entry.Measurement, len(s.Rows))
	scored := false
	for i := range s.Rows {
		own := make(map[string]*entry.Measurement)
		for _, one := range s.Rows[i].Finished() {
			k, known := at[one.Name]
			if !known {
				k = len(m.Images)
				at[one.Name] = k
				m.Images = append(m.Images, matrixImage{Name: one.Name})
			}
			if own[one.Name] != nil || len(m.Images) > maxMatrixImages {
				return nil
			}
			if own[one.Name] = one; one.Has(item.FileTruth) {
				m.Images[k].Truth = cmp.Or(m.Images[k].Truth, item.Key(one.ID, item.FileTruth))
			}
			scored = scored || statistic.Defined(one.Of(metric.NamePSNR))
		}
		byRow[i] = own
	}
	if !scored || len(s.Rows) > maxMatrixRows {
		return nil
	}
	slices.SortFunc(m.Images, func(a, b matrixImage) int { return sweep.CompareNatural(a.Name, b.Name) })
	variants := s.Variants()
	for i := range s.Rows {
		r := &s.Rows[i]
		row := matrixRow{Label: r.Label, Detail: detailOf(s, r, variants)}
		for _, image := range m.Images {
			row.Cells = append(row.Cells, cellOf(byRow[i][image.Name]))
		}
		m.Rows = append(m.Rows, row)
	}
	return m
}

// cellOf is the cell of a measurement, which may be nil.
func cellOf(m *entry.Measurement) matrixCell {
	if m == nil {
		return matrixCell{}
	}
	c := matrixCell{ID: m.ID, Path: item.Key(m.ID, item.FileResult), PSNR: "–"}
	if v := m.Of(metric.NamePSNR); statistic.Defined(v) {
		c.PSNR = decimal(v, false)
	}
	if v := m.Of(entry.Gain); statistic.Defined(v) {
		c.Gain = decimal(v, true)
	}
	return c
}

// decimal is a number with one decimal.
func decimal(v float64, signed bool) string {
	n := numberOf(statistic.Estimate{N: 1, Mean: v}, 1, signed)
	return n.Whole + n.Fraction
}
