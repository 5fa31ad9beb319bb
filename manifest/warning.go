package manifest

import "strings"

// Warning is a reason to doubt a result that was restored.
type Warning struct {
	// Code is one of the Warn constants.
	Code string `json:"code"`
	// Text is one line for people, with figures and their bound.
	Text string `json:"text"`
}

// The codes of warnings.
const (
	WarnResidual = "residual" // the mean square residual is far from sigma^2
	WarnWorse    = "worse"    // further from the truth than the measurement
	WarnFlat     = "flat"     // nearly without contrast, and the measurement is not
	WarnSteps    = "steps"    // far fewer steps than the preset has
	WarnPreset   = "preset"   // the preset belongs to another prior
	WarnAlpha    = "alpha"    // the alpha channel of the measurement was composited over white
	WarnTables   = "tables"   // the quantisation tables of a JPEG file are not those of the task's quality
	WarnProfile  = "profile"  // the ICC profile of the measurement cannot be kept
)

// WarningCodes joins the codes of warnings, in order, with semicolons.
func WarningCodes(warnings []Warning) string {
	codes := make([]string, len(warnings))
	for i, w := range warnings {
		codes[i] = w.Code
	}
	return strings.Join(codes, ";")
}
