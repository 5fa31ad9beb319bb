package metric

import (
	"errors"
	"math"
	"slices"
	"strings"

	"ddiff/internal/restore/raster"
)

// Set is a list of metrics. Results, tables, pages, comparisons and tunings have what [Builtin] lists, in its order.
type Set []Metric

// Builtin lists the metrics that workers compute.
func Builtin() Set {
	return Set{
		psnr(),
		ssim(),
		lumaPSNR(),
		haarPSI(),
		sharpness(),
		residual(),
	}
}

// The names of metrics that have a part of their own in reports and rules.
const (
	NamePSNR      = "psnr"
	NameSSIM      = "ssim"
	NameSharpness = "sharpness"
	NameResidual  = "residual"
)

// Metric is a score of a restored image. It has either Compare or Misfit.
type Metric struct {
	// Name is the key in result.json and the column of results.csv. A change of any score requires a new Version.
	Name    string `json:"name"`
	Version string `json:"version"`
	// Title is the name for people, Unit the unit, empty without one; Decimals are those of texts.
	Title    string `json:"title"`
	Unit     string `json:"unit,omitempty"`
	Decimals int    `json:"decimals"`
	Better   Better `json:"better,omitempty"` // empty: unknown
	// Minimum is the least height and width of an image in pixels, 0 without a limit.
	Minimum int `json:"minimum,omitempty"`
	// Main: tables of means have a column for the metric, and cards of images a place.
	Main bool `json:"main,omitempty"`
	// Degraded: the degraded image is scored too, by the name [Degraded].
	Degraded bool `json:"degraded,omitempty"`

	// Compare returns the score of a restored image. The caller has passed both images to [Check]. See [Inapplicable].
	Compare func(truth, restored *raster.Image) (float64, error) `json:"-"`
	// Misfit returns the score of A(x) beside the measurement y, whose noise has the given mean variance. It needs no truth.
	Misfit func(y, ax []float32, variance float64) (float64, error) `json:"-"`
}

// Better says which of two scores is better.
type Better string

// The directions.
const (
	Higher       Better = "higher"
	Lower        Better = "lower"
	CloserToZero Better = "closer_to_zero"
)

// ID is the versioned id, such as "psnr@1".
func (m Metric) ID() string { return m.Name + "@" + m.Version }

// Merit orders scores: the better one has the higher merit.
func (m Metric) Merit(score float64) float64 {
	switch m.Better {
	case Lower:
		return -score
	case CloserToZero:
		return -math.Abs(score)
	default:
		return score
	}
}

// NameOf returns the name in the versioned id of a metric: "psnr" of "psnr@1".
func NameOf(id string) string {
	name, _, _ := strings.Cut(id, "@")
	return name
}

// Degraded is the name of the score of the degraded image, such as the bicubic enlargement in super-resolution.
func Degraded(name string) string { return "baseline_" + name }

// Inapplicable reports whether an error of a metric says that it does not apply to the images.
func Inapplicable(err error) bool { return errors.Is(err, ErrTooSmall) || errors.Is(err, ErrUndefined) }

// Describe returns the metric of [Builtin] with a name, and for another one, as of a network, a metric without functions that texts can name.
func Describe(name string) Metric {
	if m, ok := Builtin().Find(name); ok {
		return m
	}
	return Metric{Name: name, Title: name, Decimals: 4, Main: true}
}

// Find returns the metric with a name.
func (s Set) Find(name string) (Metric, bool) {
	at := slices.IndexFunc(s, func(m Metric) bool { return m.Name == name })
	if at < 0 {
		return Metric{}, false
	}
	return s[at], true
}

// Names returns the names in order.
func (s Set) Names() []string {
	var names []string
	for _, m := range s {
		names = append(names, m.Name)
	}
	return names
}

// Main returns the main metrics.
func (s Set) Main() Set {
	return slices.DeleteFunc(slices.Clone(s), func(m Metric) bool { return !m.Main })
}

// Comparing returns the metrics that compare a restored image with the truth.
func (s Set) Comparing() Set {
	return slices.DeleteFunc(slices.Clone(s), func(m Metric) bool { return m.Compare == nil })
}
