package randomnet

// HeadChannels is the width of an attention head.
const HeadChannels = 64

const (
	groups   = 32 // of a group normalisation
	channels = 3  // of an image
)

// Config describes an architecture with one residual block per level.
type Config struct {
	// Size is the side of the images in pixels, a multiple of 2 for each level after the first. The network supports this size only.
	Size int
	// Base is the number of channels at full resolution, a multiple of 32.
	Base int
	// Multipliers scale Base, one per level; each level halves the side. The last one gives a multiple of 64.
	Multipliers []int
	// Attention lists the sides of the feature maps with attention; their channels must be a multiple of 64.
	Attention []int
}

// FFHQ returns the 256×256 architecture with 93.6 million weights.
func FFHQ() Config {
	return Config{Size: 256, Base: 128, Multipliers: []int{1, 1, 2, 2, 4, 4}, Attention: []int{16}}
}

// Small returns an architecture with 1.4 million weights for images of a side in pixels, a multiple of 4.
func Small(size int) Config {
	return Config{Size: size, Base: 32, Multipliers: []int{1, 2, 2}, Attention: []int{size / 4}}
}
