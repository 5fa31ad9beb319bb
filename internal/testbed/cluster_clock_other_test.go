//go:build !(linux && amd64)

package testbed

import (
	"errors"
	"time"
)

// MoveClock is implemented on Linux on amd64 only.
func (p *Process) MoveClock(time.Duration) error {
	return errors.New("move the clock of " + p.Name + ": implemented on linux/amd64 only")
}
