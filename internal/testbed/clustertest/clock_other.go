//go:build !(linux && amd64)

package clustertest

import (
	"errors"
	"time"
)

// MoveClock sets the wall clock of the process alone. It is known how on Linux on amd64 only.
func (p *Process) MoveClock(time.Duration) error {
	return errors.New("move the clock of " + p.Name + ": it is known how on linux/amd64 only")
}
