package randomnet

import (
	"errors"
	"fmt"
	"slices"
)

// ErrConfig: a setting of the network is out of range; the message names the field.
var ErrConfig = errors.New("network setting")

// HeadChannels is the width of an attention head.
const HeadChannels = 64

// groups is the number of groups of a group normalisation.
const groups = 32

// Config describes an architecture.
type Config struct {
	// Size is the side of the images in pixels. The network supports this size only.
	Size int
	// Channels is the number of channels of an image.
	Channels int
	// Base is the number of channels at full resolution, a multiple of 32.
	Base int
	// Multipliers scale Base, one per level; each level halves the side.
	Multipliers []int
	// Blocks is the number of residual blocks per level.
	Blocks int
	// Attention lists the sides of the feature maps with attention; their channels must be a multiple of 64.
	Attention []int
	// Seed selects the weights.
	Seed uint64
}

// FFHQ returns the 256×256 architecture with 93.6 million weights.
func FFHQ() Config {
	return Config{Size: 256, Channels: 3, Base: 128, Multipliers: []int{1, 1, 2, 2, 4, 4}, Blocks: 1, Attention: []int{16}}
}

// Small returns an architecture with 1.4 million weights for images of a side in pixels, a multiple of 4.
func Small(size int) Config {
	return Config{Size: size, Channels: 3, Base: 32, Multipliers: []int{1, 2, 2}, Blocks: 1, Attention: []int{size / 4}}
}

// Validate returns ErrConfig with the first invalid field.
func (c Config) Validate() error {
	switch {
	case c.Channels < 1:
		return fmt.Errorf("%w Channels: %d must be at least 1", ErrConfig, c.Channels)
	case c.Base < groups || c.Base%groups != 0:
		return fmt.Errorf("%w Base: %d must be a positive multiple of %d", ErrConfig, c.Base, groups)
	case len(c.Multipliers) == 0:
		return fmt.Errorf("%w Multipliers: must not be empty", ErrConfig)
	case c.Blocks < 1:
		return fmt.Errorf("%w Blocks: %d must be at least 1", ErrConfig, c.Blocks)
	case c.Size < 8 || c.Size%c.multipleOf() != 0:
		return fmt.Errorf("%w Size: %d must be a multiple of %d, at least 8", ErrConfig, c.Size, c.multipleOf())
	}
	for _, m := range c.Multipliers {
		if m < 1 {
			return fmt.Errorf("%w Multipliers: %d must be at least 1", ErrConfig, m)
		}
	}
	for level, m := range c.Multipliers {
		if slices.Contains(c.Attention, c.Size>>level) && c.Base*m%HeadChannels != 0 {
			return fmt.Errorf("%w Attention: %d channels at side %d must be a multiple of %d", ErrConfig, c.Base*m, c.Size>>level, HeadChannels)
		}
	}
	if last := c.Base * c.Multipliers[len(c.Multipliers)-1]; last%HeadChannels != 0 {
		return fmt.Errorf("%w Multipliers: the %d channels of the middle block must be a multiple of %d", ErrConfig, last, HeadChannels)
	}
	return nil
}

// multipleOf returns the divisor of both image sides.
func (c Config) multipleOf() int { return 1 << (len(c.Multipliers) - 1) }
