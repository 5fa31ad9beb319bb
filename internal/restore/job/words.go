package job

import (
	"fmt"
	"math"
	"strings"

	"ddiff/internal/restore/photograph"
)

// Tried has the doubts about the restorations of a picture so far, in their order. Every sentence of the check is made from this record alone, so that none contradicts
// another, and no setting is advised that was tried in vain.
type Tried []*Doubt

// String names what was tried, with the findings. Neighbours with one finding are a range.
func (t Tried) String() string {
	var parts []string
	for i := 0; i < len(t); i++ {
		d := t[i]
		setting := d.Setting
		for ; i+1 < len(t) && t[i+1].Finding == d.Finding && t[i+1].Level != d.Level; i++ {
			setting = fmt.Sprintf("%s to %.3g", d.Setting, t[i+1].Level)
		}
		parts = append(parts, strings.TrimSpace(setting+" "+d.Finding))
	}
	return strings.Join(parts, ", ")
}

// offer is String with the settings that follow from the last doubt, which were not tried.
func (t Tried) offer() string {
	if d := t.last(); d.Std != 0 {
		return fmt.Sprintf("%v; try %s", t, stdText(d.Given))
	} else if d.Sigma != d.Level {
		return fmt.Sprintf("%v; try %s", t, sigmaText(d.Sigma))
	}
	return t.String()
}

// changed is String with the settings that followed, and the noise level of the result that was believed.
func (t Tried) changed(sigma float64) string {
	var with []string
	for _, d := range t {
		if d.Std != 0 {
			with = append(with, stdText(d.Given))
		}
	}
	if sigma != t[0].Level || len(with) == 0 {
		with = append(with, sigmaText(sigma))
	}
	return fmt.Sprintf("%v; restored with %s", t, strings.Join(with, " and "))
}

func (t Tried) last() *Doubt {
	if len(t) == 0 {
		return nil
	}
	return t[len(t)-1]
}

// tooLarge is the smallest noise level that was found too large, +∞ for none.
func (t Tried) tooLarge() float64 {
	top := math.Inf(1)
	for _, d := range t {
		if d.Sigma < d.Level {
			top = min(top, d.Level)
		}
	}
	return top
}

// refuses reports whether a noise level is beyond one of which the opposite was found.
func (t Tried) refuses(sigma float64) bool {
	for _, d := range t {
		if d.Raised && sigma <= d.Level {
			return true
		}
	}
	return sigma >= t.tooLarge()
}

// Changed notes that the settings are not those of the first restoration, which was doubted.
func (j *Job) Changed(tried Tried) {
	j.tried = tried
	j.warn(photograph.WarnChanged, tried.changed(j.Item.Sigma))
}

// doubt is one that leads to no other settings, doubtSigma one on the noise level.
func (j *Job) doubt(finding string) *Doubt {
	return &Doubt{Finding: finding, Level: j.Item.Sigma, Sigma: j.Item.Sigma}
}

func (j *Job) doubtSigma(finding string) *Doubt {
	d := j.doubt(finding)
	d.Setting = sigmaText(j.Item.Sigma)
	return d
}

// unlessTried is an advice that leads to a noise level, with the semicolon before it; empty where the check has refused such a level.
func (j *Job) unlessTried(sigma float64, advice string) string {
	if j.tried.refuses(sigma) {
		return ""
	}
	return "; " + advice
}

// width is the text of a parameter std of the measurement, in the unit of the whole picture.
func (j *Job) width(std float64) string { return stdText(j.ofOriginal(std)) }

func sigmaText(sigma float64) string { return fmt.Sprintf("sigma %.3g", sigma) }

func stdText(std float64) string { return fmt.Sprintf("std %.2g", std) }

// Causes names what may be wrong where no noise level explains a picture.
func (j *Job) Causes() string {
	switch {
	case j.Op.Width != "" && j.Item.Kernel == nil:
		return "the task and " + j.Op.Width
	case j.Item.Kernel != nil:
		return "the task and the kernel"
	case j.Item.Mask != nil:
		return "the task and the mask"
	}
	return "the task"
}
