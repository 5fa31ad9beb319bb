package job

import (
	"fmt"

	"ddiff/internal/hostmemory"
	"ddiff/restore"
)

const (
	// maxDecodeMemory is the largest default memory for decoding: an image of raster.MaxPixels.
	maxDecodeMemory = 4 << 30
	// minDecodeMemory is the smallest: an image of 2 Mi pixels.
	minDecodeMemory = 64 << 20
)

// DecodeMemory returns the default memory for decoding, in bytes.
func DecodeMemory() int64 { return decodeMemory(hostmemory.Machine()) }

// decodeMemory returns the default memory for decoding: half of the memory of the process, in bytes.
func decodeMemory(machine int64) int64 {
	if machine == 0 {
		return maxDecodeMemory
	}
	return min(max(machine/2, minDecodeMemory), maxDecodeMemory)
}

// DefaultSolveShare is the default share of the memory of the machine for solving.
const DefaultSolveShare = 0.5

// SolveMemory returns the default memory for solving: a share of the memory of the process, in bytes. 0: it is unknown.
func SolveMemory(share float64) int64 { return int64(share * float64(hostmemory.Machine())) }

// checkMemory returns ErrMemory if solving an item alone exceeds the limit.
func (s Loader) checkMemory(j *Job) error {
	need := s.Engine.Memory(j.Plan, 1)
	if s.Memory == 0 || need <= s.Memory {
		return nil
	}
	remedy, tiled := "use --fit center_crop or resize", "use --tile auto, --fit center_crop or resize"
	if j.Item.Measurement != nil { // it has no fit
		remedy, tiled = "reduce the picture", "use --tile auto, or reduce the picture"
	}
	if side := s.Engine.Prior().Card.TileSide(); j.Plan.Tiles.Side == 0 && max(j.Item.Width, j.Item.Height) > side {
		remedy = tiled
	}
	return fmt.Errorf("restore %d×%d pixels: %w: about %d MiB, at most %d MiB are allowed; %s, or a worker with more memory or a larger --memory-share",
		j.Item.Width, j.Item.Height, ErrMemory, need>>20, s.Memory>>20, remedy)
}

// Fitting returns the largest batch of at most n images of a plan within the limit, at least 1. Images in tiles are solved one after the other:
// their tiles are batches already.
func (s Loader) Fitting(plan restore.Plan, n int) int {
	if plan.Divided() {
		return 1
	}
	for s.Memory > 0 && n > 1 && s.Engine.Memory(plan, n) > s.Memory {
		n /= 2
	}
	return n
}
