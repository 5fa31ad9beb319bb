// Package sweep names what a result restored and how: a [Cell] of a sweep is a [Problem] and an [Approach], and the key of a table's row.
// It owns the texts of parameters and settings and the order of names. A property in which rows may differ is a field here.
package sweep

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ddiff/manifest"
	"ddiff/restore/item"
)

// ShortPrior abbreviates the digest of a prior.
func ShortPrior(digest string) string { return digest[:min(8, len(digest))] }

// PhotonsText is the number of photons, empty without their noise.
func (p Problem) PhotonsText() string {
	if p.Photons == 0 {
		return ""
	}
	return Exact(p.Photons)
}

// NoiseText names the noise as in "σ 0.05, 100 photons".
func (p Problem) NoiseText(sigma string) string {
	if p.Photons == 0 {
		return sigma + p.Sigma.String()
	}
	return sigma + p.Sigma.String() + ", " + Exact(p.Photons) + " photons"
}

// sizeOf is the size in a [Problem].
func sizeOf(it *item.Item) string {
	switch {
	case it.Width == 0:
		return ""
	case it.Fit == item.FitPad:
		return string(item.FitPad)
	}
	return strings.TrimSpace(Pixels(it.Width, it.Height) + " " + string(it.Fit))
}

// Pixels is a size as text, such as 128x64.
func Pixels(width, height int) string { return strconv.Itoa(width) + "x" + strconv.Itoa(height) }

// Problem is what the images of one row of a table have in common: degradation, noise level and size.
type Problem struct {
	Task string `json:"task"`
	// Params are the complete parameters of the operator, such as "factor=4", with the digest of an operator's file, and a
	// measurement range; a semicolon separates several. A report adds masks and kernels that it tells apart.
	Params string `json:"params,omitempty"`
	// Sigma is the standard deviation of the noise, in units of y, or auto: estimated for each measurement.
	Sigma item.Sigma `json:"sigma"`
	// Photons is the number of photons of a white pixel, 0 without their noise.
	Photons float64 `json:"photons,omitempty"`
	// Size is the working size in pixels and the fit, such as "128x128 resize", or "pad" where each image keeps its
	// size. Empty: the items failed before their size was known.
	Size string `json:"size,omitempty"`
}

// Compare orders problems by task, parameters, noise and size.
func (p Problem) Compare(q Problem) int {
	return cmp.Or(
		strings.Compare(p.Task, q.Task),
		compareAssignments(p.Params, q.Params),
		cmp.Compare(p.Sigma, q.Sigma),
		cmp.Compare(p.Photons, q.Photons),
		CompareNatural(p.Size, q.Size),
	)
}

// Approach is one way to solve a problem.
type Approach struct {
	Method string `json:"method"`
	// Prior is the SHA-256 of the prior's file.
	Prior string `json:"prior,omitempty"`
	// Settings are the complete settings of the method, such as "steps=120;gamma0=8", with the tiles and keep_observed of an item that has them.
	Settings string `json:"settings,omitempty"`
	// Precision is the one that the campaign fixes for the score network; empty if it leaves the choice to the workers.
	Precision manifest.Precision `json:"precision,omitempty"`
}

// Compare orders approaches by method, prior, settings and precision.
func (a Approach) Compare(b Approach) int {
	return cmp.Or(
		strings.Compare(a.Method, b.Method),
		strings.Compare(a.Prior, b.Prior),
		compareAssignments(a.Settings, b.Settings),
		cmp.Compare(a.Precision, b.Precision),
	)
}

// FullText names the approach by all that may tell it from others of its prior.
func (a Approach) FullText() string {
	text := a.Method + " (" + a.Settings + ")"
	if a.Precision != "" {
		text += " in " + string(a.Precision)
	}
	return text
}

// Cell is one cell of a sweep, the key of a table's row: a problem and an approach.
type Cell struct {
	Problem
	Approach
}

// Resolved reports whether the group has its complete parameters and settings. The items of other groups failed
// before.
func (g Cell) Resolved() bool { return g.Size != "" }

// MayBe reports whether an unresolved group's items would be items of the group to, as far as is known.
func (g Cell) MayBe(to Cell) bool {
	return to.Resolved() && g.Task == to.Task && g.Method == to.Method && g.Precision == to.Precision && g.Sigma == to.Sigma && g.Photons == to.Photons &&
		containsAssignments(to.Params, g.Params)
}

// noiseSetting begins the setting of methods that is the noise level by default.
const noiseSetting = "noise_std="

// Tiles are those of an item as settings, such as "tile=256;overlap=64"; empty without tiles.
func Tiles(it *item.Item) string {
	if it.Tile == 0 {
		return ""
	}
	return fmt.Sprintf("tile=%d;overlap=%d", it.Tile, it.Overlap)
}

// CellOf returns the cell of an item. Images that keep their sizes share a row whether one tile covers them or not, so that the cell lacks their tiles.
func CellOf(it *item.Item) (Cell, error) {
	all, err := Settings(it.Solver)
	if err != nil {
		return Cell{}, fmt.Errorf("read item %q: %w", it.Name, err)
	}
	var list []string
	for _, s := range all {
		if s.Name != "method" {
			list = append(list, s.Name+"="+s.Value)
		}
	}
	if it.KeepObserved {
		list = append(list, "keep_observed=true")
	}
	if it.Fit != item.FitPad {
		list = append(list, Assignments(Tiles(it))...)
	}
	sigma := item.Sigma(it.Sigma)
	if it.SigmaEstimated {
		// The settings that are the noise level by default would make each image a problem of its own.
		if i := slices.Index(list, noiseSetting+Exact(it.Sigma)); i >= 0 {
			list[i] = noiseSetting + item.SigmaAuto.String()
		}
		sigma = item.SigmaAuto
	}
	return Cell{
		Problem{Task: it.Task, Params: Params(it), Sigma: sigma, Photons: it.Photons, Size: sizeOf(it)},
		Approach{Method: it.Method, Prior: it.Prior, Settings: strings.Join(list, ";"), Precision: it.Precision},
	}, nil
}

// Describe returns the problem in one line.
func (p Problem) Describe() string {
	text := p.Task
	if p.Params != "" {
		text += " " + p.Params
	}
	return p.NoiseText(text+" σ=") + " " + p.Size
}
