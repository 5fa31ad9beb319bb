package main

import "ddiff/manifest"

// sigmaFlag is the value of --sigma.
type sigmaFlag struct{ sigma *manifest.Sigma }

// String implements pflag.Value.
func (f *sigmaFlag) String() string {
	if f.sigma == nil {
		return ""
	}
	return f.sigma.String()
}

// Set implements pflag.Value.
func (f *sigmaFlag) Set(text string) (err error) {
	*f.sigma, err = manifest.ParseSigma(text)
	return err
}

// Type implements pflag.Value.
func (f *sigmaFlag) Type() string { return "float" }
