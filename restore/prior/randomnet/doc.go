// Package randomnet builds a score network with random weights in the architecture of guided-diffusion: residual blocks with scale and
// shift by the time, attention, learned variance. It has the operations of a published prior without its file. Its predictions are
// meaningless; it serves to measure agreement between devices, and with the code of authors.
//
// Package noise draws the weights from their names, so that all machines build equal networks. The names are
// those of the published state dictionaries. The weights are scaled to keep activations near 1.
package randomnet
