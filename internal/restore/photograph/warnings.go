package photograph

// The codes of warnings.
const (
	WarnResidual = "residual" // the mean square residual is far from sigma^2
	WarnWorse    = "worse"    // further from the truth than the measurement
	WarnSigma    = "sigma"    // the stated noise level is far from that of the picture, or the estimate is doubtful
	WarnChanged  = "changed"  // restored with another noise level or width of a blur than the stated or estimated one, with which the result was not to be believed
	WarnDoubt    = "doubt"    // not to be believed, and not restored with other settings: by a campaign, or unchecked
	WarnOperator = "operator" // the measurement has more than noise where the stated blur leaves nothing, or its mosaic is likely to be of another filter
	WarnFlat     = "flat"     // nearly without contrast, and the measurement is not
	WarnMask     = "mask"     // the mask's file was repaired, or is doubtful, or loses most pixels: it may be inverted
	WarnKernel   = "kernel"   // the kernel's file was repaired, or is doubtful
	WarnPixels   = "pixels"   // dead and hot pixels of a stored picture were replaced
	WarnGuess    = "guess"    // colours, or a wide hole, of a stored picture, about which its measurement says nothing
	WarnClipped  = "clipped"  // much of a stored picture is black or white, where its noise is cut off
	WarnSteps    = "steps"    // far fewer steps than the preset has
	WarnPreset   = "preset"   // the preset belongs to another prior
	WarnAlpha    = "alpha"    // the alpha channel of the measurement was composited over white
	WarnTables   = "tables"   // the quantisation tables of a JPEG file are not those of the task's quality
	WarnProfile  = "profile"  // what says how the measurement's colours are meant cannot be kept, such as an ICC profile
	WarnFile     = "file"     // something of the measurement's file beside its pixels cannot be kept, such as further pages
)
