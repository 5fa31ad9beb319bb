package queue

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"
)

// retryDelay is the pause after the given attempt, counted from 1: base, doubled with every
// further attempt up to limit, times a factor in [0.5, 1) that spreads the items of a failed
// batch. The factor follows from the id and the attempt, so that a delay can be repeated.
func retryDelay(base, limit time.Duration, id string, attempt int) time.Duration {
	delay := base
	for range attempt - 1 {
		if delay >= limit {
			break
		}
		delay *= 2
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", id, attempt))
	factor := 0.5 + 0.5*float64(binary.BigEndian.Uint64(sum[:])>>11)/(1<<53)
	return time.Duration(float64(min(delay, limit)) * factor)
}
