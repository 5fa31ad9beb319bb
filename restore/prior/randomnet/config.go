package randomnet

import (
	"errors"
	"fmt"
)

// ErrConfig: a setting of the network is out of its range; the message names it.
var ErrConfig = errors.New("network setting")

// HeadChannels is the width of an attention head.
const HeadChannels = 64

// groups is the number of groups of a norm.
const groups = 32

// Config is an architecture.
type Config struct {
	// Size is the side of the images in pixels. The network is made for this size only.
	Size int
	// Channels of the image.
	Channels int
	// Base is the number of channels at full resolution, a multiple of 32.
	Base int
	// Multipliers of Base, one per level; each level has half the side of the one before.
	Multipliers []int
	// Blocks is the number of residual blocks per level.
	Blocks int
	// Attention lists the sides of the feature maps that have attention. The channels there
	// must be a multiple of 64.
	Attention []int
	// Seed draws the weights.
	Seed uint64
}

// FFHQ is the 256×256 architecture of 93.6 million weights.
func FFHQ() Config {
	return Config{Size: 256, Channels: 3, Base: 128, Multipliers: []int{1, 1, 2, 2, 4, 4}, Blocks: 1, Attention: []int{16}}
}

// Small is the same kind of network with 1.4 million weights, for images of a given side, a
// multiple of 4.
func Small(size int) Config {
	return Config{Size: size, Channels: 3, Base: 32, Multipliers: []int{1, 2, 2}, Blocks: 1, Attention: []int{size / 4}}
}

// Validate names the first field that is wrong.
func (c Config) Validate() error {
	switch {
	case c.Channels < 1:
		return fmt.Errorf("%w Channels: %d is below 1", ErrConfig, c.Channels)
	case c.Base < groups || c.Base%groups != 0:
		return fmt.Errorf("%w Base: %d is not a positive multiple of %d", ErrConfig, c.Base, groups)
	case len(c.Multipliers) == 0:
		return fmt.Errorf("%w Multipliers: there is none", ErrConfig)
	case c.Blocks < 1:
		return fmt.Errorf("%w Blocks: %d is below 1", ErrConfig, c.Blocks)
	case c.Size < 8 || c.Size%c.multipleOf() != 0:
		return fmt.Errorf("%w Size: %d is not a multiple of %d, at least 8", ErrConfig, c.Size, c.multipleOf())
	}
	for _, m := range c.Multipliers {
		if m < 1 {
			return fmt.Errorf("%w Multipliers: %d is below 1", ErrConfig, m)
		}
	}
	for level, m := range c.Multipliers {
		if c.attends(c.Size>>level) && c.Base*m%HeadChannels != 0 {
			return fmt.Errorf("%w Attention: %d channels at side %d are not a multiple of %d", ErrConfig, c.Base*m, c.Size>>level, HeadChannels)
		}
	}
	if last := c.Base * c.Multipliers[len(c.Multipliers)-1]; last%HeadChannels != 0 {
		return fmt.Errorf("%w Multipliers: the %d channels of the middle are not a multiple of %d", ErrConfig, last, HeadChannels)
	}
	return nil
}

// multipleOf is the number that both sides of an image must be a multiple of.
func (c Config) multipleOf() int { return 1 << (len(c.Multipliers) - 1) }

func (c Config) attends(side int) bool {
	for _, s := range c.Attention {
		if s == side {
			return true
		}
	}
	return false
}
