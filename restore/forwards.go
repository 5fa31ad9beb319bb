package restore

import (
	"errors"
	"slices"
	"sync"

	"ddiff/restore/operator"
)

// forwards are compiled operators that no goroutine uses, the least recently used first. Several may be equal.
type forwards struct {
	mu   sync.Mutex
	idle []entry[*operator.Forward]
}

// take returns one of the operators with a key, or nil.
func (s *forwards) take(key string) *operator.Forward {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, e := range slices.Backward(s.idle) {
		if e.key == key {
			s.idle = slices.Delete(s.idle, i, i+1)
			return e.value
		}
	}
	return nil
}

// put keeps an operator that is no longer used. Beyond keptForwards the least recently used one is closed.
func (s *forwards) put(key string, f *operator.Forward) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, entry[*operator.Forward]{key, f})
	if len(s.idle) <= keptForwards {
		return nil
	}
	oldest := s.idle[0].value
	s.idle = slices.Delete(s.idle, 0, 1)
	return oldest.Close()
}

// clear closes and removes all operators.
func (s *forwards) clear() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, e := range s.idle {
		errs = append(errs, e.value.Close())
	}
	s.idle = nil
	return errors.Join(errs...)
}
