package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockPoll is the interval of attempts to acquire the lock.
const lockPoll = 100 * time.Millisecond

// lockCache acquires the lock for changes of the cache. It waits until the lock is free or ctx ends. The lock belongs to
// an open file, so the system releases it when the process ends.
func lockCache(ctx context.Context, cache string) (unlock func() error, err error) {
	file, err := os.OpenFile(filepath.Join(cache, ".lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the cache: %w", err)
	}
	ticker := time.NewTicker(lockPoll)
	defer ticker.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return file.Close, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), file.Close())
		}
		select {
		case <-ctx.Done():
			err := fmt.Errorf("wait for another installation with the lock %s: %w", file.Name(), context.Cause(ctx))
			return nil, errors.Join(err, file.Close())
		case <-ticker.C:
		}
	}
}
