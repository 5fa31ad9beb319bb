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

// apply calls use with an operator that has a key, or with a new one, and keeps it for later calls. The least recently used one gives way.
func (s *forwards) apply(key string, build func() (*operator.Forward, error), use func(*operator.Forward) ([]float32, error)) (out []float32, err error) {
	s.mu.Lock()
	f, i := (*operator.Forward)(nil), slices.IndexFunc(s.idle, func(e entry[*operator.Forward]) bool { return e.key == key })
	if i >= 0 {
		f = s.idle[i].value
		s.idle = slices.Delete(s.idle, i, i+1)
	}
	s.mu.Unlock()
	if f == nil {
		if f, err = build(); err != nil {
			return nil, err
		}
	}
	out, err = use(f)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, entry[*operator.Forward]{key, f})
	if len(s.idle) > keptForwards {
		err = errors.Join(err, s.idle[0].value.Close())
		s.idle = slices.Delete(s.idle, 0, 1)
	}
	return out, err
}
