package parameter

import "slices"

// Precision is the arithmetic of a score network. All other arithmetic of a step is float32: operators, data term, state,
// schedule and norms. The value is the name in campaign files, flags, results and checkpoints.
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

// Fixed reports whether p is one of [Precisions].
func (p Precision) Fixed() bool { return slices.Contains(Precisions(), p) }
