package campaign

import "ddiff/manifest"

// SigmaFlag is the value of --sigma.
type SigmaFlag struct{ Sigma *manifest.Sigma }

// String implements pflag.Value.
func (f *SigmaFlag) String() string {
	if f.Sigma == nil {
		return ""
	}
	return f.Sigma.String()
}

// Set implements pflag.Value.
func (f *SigmaFlag) Set(text string) (err error) {
	*f.Sigma, err = manifest.ParseSigma(text)
	return err
}

// Type implements pflag.Value.
func (f *SigmaFlag) Type() string { return "float" }
