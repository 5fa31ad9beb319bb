// Package randomnet builds score networks with random weights in the architecture of
// guided-diffusion: the shapes, the operations and so the costs of a real prior, without its
// file. What it predicts is meaningless; it serves to measure speed, memory and agreement
// between devices.
//
// [FFHQ] is the configuration of the 256×256 face model that diffusion-based restoration is
// usually reported with: 128 base channels, multipliers 1, 1, 2, 2, 4, 4, one residual block
// per level, attention at 16×16 with heads of 64 channels, scale and shift by the time, learned
// variance; 93.6 million weights.
//
// Weights are drawn by package noise from a seed and their names, so that two machines make
// the same network. Their names are those of the published state dictionaries. They are scaled
// so that activations stay near one.
package randomnet
