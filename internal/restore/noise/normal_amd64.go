package noise

import "golang.org/x/sys/cpu"

const (
	// groupSize is the number of deviates that the processor computes together: those of eight blocks.
	groupSize = 32
	// mostGroups bounds the groups of a call, which the scheduler of Go cannot interrupt, to less than 0.1 ms.
	mostGroups = 1024
)

// normalBlocks fills whole blocks at the beginning of dst, from block i on, and returns their number.
func normalBlocks(dst []float32, key Key, purpose Purpose, step, i uint32, std float64) int {
	if !cpu.X86.HasAVX2 {
		return 0
	}
	all := len(dst) / groupSize
	for done := 0; done < all; {
		n := min(all-done, mostGroups)
		normalAVX2(&dst[done*groupSize], n, i+uint32(done*groupSize/4), step, uint32(purpose), key[2], key[0], key[1], std)
		done += n
	}
	return all * groupSize / 4
}

// normalAVX2 is normal for groups of deviates, at least one, from block i on.
//
//go:noescape
func normalAVX2(dst *float32, groups int, i, step, purpose, k2, k0, k1 uint32, std float64)
