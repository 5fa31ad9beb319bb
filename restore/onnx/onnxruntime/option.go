package onnxruntime

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Options are the settings of an execution provider by key, an Option constant. Without any, results can be compared with those of a
// CPU. Validate refuses an option that the provider does not have.
type Options map[string]string

// The keys of Options.
const (
	// OptionMemoryLimit bounds the provider's arena on the device, in bytes, for cuda, and the CUDA provider beside tensorrt.
	// Default: no limit.
	OptionMemoryLimit = "memory_limit"
	// OptionConvSearch selects the choice of convolution algorithms, a Search constant, for cuda and tensorrt. Default: heuristic, which makes
	// the same choice in every run.
	OptionConvSearch = "conv_search"
	// OptionTF32 rounds the factors of float32 products to 10 bits on NVIDIA's GPUs: on or off, for cuda and tensorrt. Default: off.
	OptionTF32 = "tf32"
	// OptionLayout is the layout of images inside the provider, a Layout constant: for cuda nchw (default) or nhwc, for webgpu nhwc
	// (default) or nchw.
	OptionLayout = "layout"
	// OptionAllowFallback lets operations that the provider lacks run on the CPU instead of the GPU: on or off. Default: off.
	OptionAllowFallback = "allow_fallback"
)

// The values of Options that are words.
const (
	SearchHeuristic  = "heuristic"  // cuDNN's heuristics choose the convolution algorithm
	SearchExhaustive = "exhaustive" // cuDNN times the algorithms; the choice varies between runs
	SearchDefault    = "default"    // cuDNN's fallback algorithm

	LayoutNCHW = "nchw" // channels before rows
	LayoutNHWC = "nhwc" // channels last, for tensor cores
)

var (
	searches = []string{SearchHeuristic, SearchExhaustive, SearchDefault}
	flag     = []string{"on", "off"}
	// optionWords has the valid values of each option by provider; nil for numbers.
	optionWords = map[string]map[string][]string{
		OptionMemoryLimit:   {ProviderCUDA: nil, ProviderTensorRT: nil},
		OptionConvSearch:    {ProviderCUDA: searches, ProviderTensorRT: searches},
		OptionTF32:          {ProviderCUDA: flag, ProviderTensorRT: flag},
		OptionLayout:        {ProviderCUDA: {LayoutNCHW, LayoutNHWC}, ProviderWebGPU: {LayoutNCHW, LayoutNHWC}},
		OptionAllowFallback: {ProviderCUDA: flag, ProviderTensorRT: flag, ProviderWebGPU: flag},
	}
)

// Set sets an option from KEY=VALUE, such as "tf32=on". The error names the key.
func (o *Options) Set(setting string) error {
	key, value, ok := strings.Cut(setting, "=")
	byProvider := optionWords[key]
	if !ok || byProvider == nil {
		return fmt.Errorf("%q is not KEY=VALUE with a key of %s", setting, strings.Join(slices.Sorted(maps.Keys(optionWords)), ", "))
	}
	words := slices.Compact(slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(byProvider))...))))
	if len(words) > 0 && !slices.Contains(words, value) {
		return fmt.Errorf("%s: %q is none of %s", key, value, strings.Join(words, ", "))
	}
	if key == OptionMemoryLimit {
		n, err := parseBytes(value)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		value = strconv.FormatInt(n, 10)
	}
	if *o == nil {
		*o = Options{}
	}
	(*o)[key] = value
	return nil
}

// parseBytes parses a number of bytes with an optional suffix KiB, MiB or GiB.
func parseBytes(s string) (int64, error) {
	number, unit := s, int64(1)
	for suffix, size := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if n, ok := strings.CutSuffix(s, suffix); ok {
			number, unit = n, size
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 || n > (1<<62)/unit {
		return 0, fmt.Errorf("%q is not a number of bytes, as in 8GiB", s)
	}
	return n * unit, nil
}

// validate names the first option that is invalid or that the provider does not have.
func (o Options) validate(provider string) error {
	for _, key := range slices.Sorted(maps.Keys(o)) {
		owners := strings.Join(slices.Sorted(maps.Keys(optionWords[key])), ", ")
		words, ok := optionWords[key][provider]
		switch {
		case provider == ProviderAuto:
			return fmt.Errorf("%s: needs an explicit provider (%s) instead of auto", key, owners)
		case !ok:
			return fmt.Errorf("%s: not an option of provider %s; only of %s", key, provider, owners)
		case words != nil && !slices.Contains(words, o[key]):
			return fmt.Errorf("%s: provider %s has no %s; it has %s", key, provider, o[key], strings.Join(words, " and "))
		}
	}
	return nil
}

// on reports whether a flag is set.
func (o Options) on(key string) bool { return o[key] == "on" }
