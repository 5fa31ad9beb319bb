package gpuworker

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"ddiff/restore"
)

const (
	// maxDecodeMemory is the largest default memory for decoding: an image of raster.MaxPixels.
	maxDecodeMemory = 2 << 30
	// minDecodeMemory is the smallest: an image of 2 Mi pixels.
	minDecodeMemory = 64 << 20
)

// decodeMemory returns the default memory for decoding: half of the memory of the process, in bytes.
func decodeMemory(machine int64) int64 {
	if machine == 0 {
		return maxDecodeMemory
	}
	return min(max(machine/2, minDecodeMemory), maxDecodeMemory)
}

// DefaultSolveShare is the default of Config.SolveShare.
const DefaultSolveShare = 0.5

// solveMemory returns the default memory for solving: a share of the memory of the process, in bytes. 0: it is unknown.
func solveMemory(machine int64, share float64) int64 { return int64(share * float64(machine)) }

// errMemory: solving the item needs more memory than this worker permits. A machine with more memory may restore it.
var errMemory = errors.New("needs too much memory")

// checkMemory returns errMemory if solving an item alone exceeds the limit.
func (s loader) checkMemory(t *task) error {
	need := s.engine.Memory(t.plan, 1)
	if s.memory == 0 || need <= s.memory {
		return nil
	}
	remedy := "use --fit center_crop or resize"
	if side := s.engine.Prior().Card.TileSide(); t.plan.Tiles.Side == 0 && max(t.item.Width, t.item.Height) > side {
		remedy = "use --tile auto, --fit center_crop or resize"
	}
	return fmt.Errorf("restore %d×%d pixels: %w: about %d MiB, at most %d MiB are allowed; %s, or a worker with more memory or a larger --memory-share",
		t.item.Width, t.item.Height, errMemory, need>>20, s.memory>>20, remedy)
}

// fitting returns the largest batch of at most n images of a plan within the limit, at least 1. Images in tiles are solved one after the other:
// their tiles are batches already.
func (s loader) fitting(plan restore.Plan, n int) int {
	if plan.Divided() {
		return 1
	}
	for s.memory > 0 && n > 1 && s.engine.Memory(plan, n) > s.memory {
		n /= 2
	}
	return n
}

// machineMemory returns the memory that the process may use: that of the machine, or the limit of its container. 0 if it
// is unknown, as on systems other than Linux.
func machineMemory() int64 { return memoryOf(os.DirFS("/")) }

// memoryOf is machineMemory of the files of a machine.
func memoryOf(root fs.FS) int64 {
	var memory int64
	if data, err := fs.ReadFile(root, "proc/meminfo"); err == nil {
		fields := bytes.Fields(data)
		for i := range len(fields) - 1 {
			if string(fields[i]) == "MemTotal:" {
				memory = number(fields[i+1]) << 10
				break
			}
		}
	}
	for _, path := range []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		data, _ := fs.ReadFile(root, path)
		if limit := number(bytes.TrimSpace(data)); limit > 0 {
			memory = min(limit, cmp.Or(memory, limit))
		}
	}
	return memory
}

// number parses a number; 0 for any other text, such as "max".
func number(text []byte) int64 {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
