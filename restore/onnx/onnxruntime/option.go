package onnxruntime

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Options are the settings of an execution provider by key, an Option constant: on or off. Without any, results can be compared with those
// of a CPU. Validate refuses an option that the provider does not have.
type Options map[string]string

// The keys of Options.
const (
	// OptionTF32 rounds the factors of float32 products to 10 bits on NVIDIA's GPUs, for cuda and tensorrt. Default: off.
	OptionTF32 = "tf32"
	// OptionAllowFallback lets operations that the provider lacks run on the CPU instead of the GPU. Default: off.
	OptionAllowFallback = "allow_fallback"
)

// optionProviders lists the providers that have an option.
var optionProviders = map[string][]string{
	OptionTF32:          {ProviderCUDA, ProviderTensorRT},
	OptionAllowFallback: {ProviderCUDA, ProviderTensorRT, ProviderWebGPU},
}

// Set sets an option from KEY=VALUE, such as "tf32=on". The error names the key.
func (o *Options) Set(setting string) error {
	key, value, ok := strings.Cut(setting, "=")
	if !ok || optionProviders[key] == nil {
		return fmt.Errorf("%q is not KEY=VALUE with a key of %s", setting, strings.Join(slices.Sorted(maps.Keys(optionProviders)), ", "))
	}
	if value != "on" && value != "off" {
		return fmt.Errorf("%s: %q is none of on, off", key, value)
	}
	if *o == nil {
		*o = Options{}
	}
	(*o)[key] = value
	return nil
}

// validate names the first option that the provider does not have.
func (o Options) validate(provider string) error {
	for _, key := range slices.Sorted(maps.Keys(o)) {
		owners := strings.Join(optionProviders[key], ", ")
		switch {
		case provider == ProviderAuto:
			return fmt.Errorf("%s: needs an explicit provider (%s) instead of auto", key, owners)
		case !slices.Contains(optionProviders[key], provider):
			return fmt.Errorf("%s: not an option of provider %s; only of %s", key, provider, owners)
		}
	}
	return nil
}

// on reports whether an option is on.
func (o Options) on(key string) bool { return o[key] == "on" }
