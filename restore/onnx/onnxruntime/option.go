package onnxruntime

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// option is one field of Options.
type option struct {
	key, field string
	providers  []string // that have the option
	words      []string // the valid values; nil for numbers and flags
	set        func(o *Options, value string) error
	get        func(o Options) string // empty: the default
}

var (
	onNVIDIA   = []string{ProviderCUDA, ProviderTensorRT}
	onTensorRT = []string{ProviderTensorRT}
	onWebGPU   = []string{ProviderWebGPU}
)

var options = []option{
	{"memory_limit", "MemoryLimit", onNVIDIA, nil, func(o *Options, v string) (err error) {
		o.MemoryLimit, err = parseBytes(v)
		return err
	}, func(o Options) string {
		if o.MemoryLimit == 0 {
			return ""
		}
		return strconv.FormatInt(o.MemoryLimit, 10)
	}},
	wordOption("arena", "Arena", onNVIDIA, func(o *Options) *string { return &o.Arena }, ArenaSameAsRequested, ArenaNextPowerOfTwo),
	wordOption("conv_search", "ConvSearch", onNVIDIA, func(o *Options) *string { return &o.ConvSearch }, SearchHeuristic, SearchExhaustive, SearchDefault),
	flagOption("tf32", "TF32", onNVIDIA, func(o *Options) *bool { return &o.TF32 }),
	wordOption("layout", "Layout", []string{ProviderCUDA, ProviderWebGPU, ProviderCPU}, func(o *Options) *string { return &o.Layout },
		LayoutNCHW, LayoutNHWC, LayoutNCHWc),
	flagOption("fp16", "FP16", onTensorRT, func(o *Options) *bool { return &o.FP16 }),
	wordOption("cache_dir", "CacheDir", onTensorRT, func(o *Options) *string { return &o.CacheDir }),
	wordOption("power", "Power", onWebGPU, func(o *Options) *string { return &o.Power }, PowerHigh, PowerLow),
	wordOption("validation", "Validation", onWebGPU, func(o *Options) *string { return &o.Validation }, "disabled", "wgpuOnly", "basic", "full"),
	{"allow_fallback", "AllowFallback", []string{ProviderCUDA, ProviderTensorRT, ProviderWebGPU}, nil, func(o *Options, v string) error {
		o.AllowFallback = strings.Split(v, ",")
		return nil
	}, func(o Options) string { return strings.Join(o.AllowFallback, ",") }},
}

func wordOption(key, field string, providers []string, at func(*Options) *string, words ...string) option {
	return option{key, field, providers, words,
		func(o *Options, v string) error { *at(o) = v; return nil },
		func(o Options) string { return *at(&o) }}
}

func flagOption(key, field string, providers []string, at func(*Options) *bool) option {
	return option{key, field, providers, nil,
		func(o *Options, v string) error {
			if v != "on" && v != "off" {
				return fmt.Errorf("%q is neither on nor off", v)
			}
			*at(o) = v == "on"
			return nil
		},
		func(o Options) string {
			if *at(&o) {
				return "on"
			}
			return ""
		}}
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

// Set sets an option from KEY=VALUE, such as "tf32=on". The error names the key.
func (o *Options) Set(setting string) error {
	key, value, ok := strings.Cut(setting, "=")
	var keys []string
	for _, opt := range options {
		if ok && opt.key == key {
			if err := opt.set(o, value); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			if len(opt.words) > 0 && !slices.Contains(opt.words, value) {
				return fmt.Errorf("%s: %q is none of %s", key, value, strings.Join(opt.words, ", "))
			}
			return nil
		}
		keys = append(keys, opt.key)
	}
	return fmt.Errorf("%q is not KEY=VALUE with a key of %s", setting, strings.Join(keys, ", "))
}

// validate names the first field that is invalid or that the provider does not have.
func (o Options) validate(provider string) error {
	for _, opt := range options {
		v := opt.get(o)
		switch {
		case v == "":
		case provider == ProviderAuto:
			return fmt.Errorf("Options.%s: needs an explicit provider (%s) instead of auto", opt.field, strings.Join(opt.providers, ", "))
		case !slices.Contains(opt.providers, provider):
			return fmt.Errorf("Options.%s: not an option of provider %s; only of %s", opt.field, provider, strings.Join(opt.providers, ", "))
		case len(opt.words) > 0 && !slices.Contains(opt.words, v):
			return fmt.Errorf("Options.%s: %q is none of %s", opt.field, v, strings.Join(opt.words, ", "))
		}
	}
	other := LayoutNHWC
	if provider == ProviderCPU {
		other = LayoutNCHWc
	}
	if o.Layout != "" && o.Layout != LayoutNCHW && o.Layout != other {
		return fmt.Errorf("Options.Layout: provider %s has no layout %s; it has %s and %s", provider, o.Layout, LayoutNCHW, other)
	}
	if o.MemoryLimit < 0 {
		return fmt.Errorf("Options.MemoryLimit: %d is negative", o.MemoryLimit)
	}
	if slices.Contains(o.AllowFallback, "") {
		return fmt.Errorf("Options.AllowFallback: a name is empty")
	}
	return nil
}
