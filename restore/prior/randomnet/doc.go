// Package randomnet builds score networks with random weights in the architecture of guided-diffusion. They have the
// shapes, operations and costs of a real prior without its file. Their predictions are meaningless; they serve to
// measure speed, memory and agreement between devices.
//
// [FFHQ] is the configuration of the 256×256 face model that papers on diffusion-based restoration usually report: 128
// base channels, multipliers 1, 1, 2, 2, 4, 4, one residual block per level, attention at 16×16 with heads of 64
// channels, scale and shift by the time, learned variance; 93.6 million weights.
//
// Package noise draws the weights from their names, so that all machines build equal networks. The names are
// those of the published state dictionaries. The weights are scaled to keep activations near 1.
package randomnet
