package parameter

import "slices"

// Precision is the arithmetic of a score network. All other arithmetic of a step is float32: operators, data term, state,
// schedule and norms. The value is the name in campaign files.
type Precision string

// The precisions.
const (
	Float32 Precision = "float32"
	// BFloat16: the provider rounds the factors of products and convolutions to bfloat16.
	BFloat16 Precision = "bfloat16"
	// Float16: the network is rewritten to float16.
	Float16 Precision = "float16"
)

// Precisions lists the precisions, Float32 first.
func Precisions() []Precision { return []Precision{Float32, BFloat16, Float16} }

// PrecisionOf returns the precision with a name, such as float16, or a short name, such as fp16. Another text is returned
// unchanged.
func PrecisionOf(text string) Precision {
	for _, p := range Precisions() {
		if text == p.Short() {
			return p
		}
	}
	return Precision(text)
}

// Fixed reports whether p is one of [Precisions].
func (p Precision) Fixed() bool { return slices.Contains(Precisions(), p) }

// Short returns the short name, which results and checkpoints record: fp32, bf16 or fp16. That of another value is the
// value.
func (p Precision) Short() string {
	switch p {
	case Float32:
		return "fp32"
	case BFloat16:
		return "bf16"
	case Float16:
		return "fp16"
	}
	return string(p)
}
