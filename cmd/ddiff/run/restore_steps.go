package run

import "sync"

// stepCount has the solver steps of restorations, which differ where settings follow from their pictures. Its methods may be called concurrently.
type stepCount struct {
	mu sync.Mutex
	of []int // by restoration; 0: not known yet
}

// all returns the steps of all restorations when those at some places have so many, after others that were made before. Unknown ones count as these.
func (s *stepCount) all(places []int, steps, before int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range places {
		s.of[i] = max(s.of[i], before+steps)
	}
	sum := 0
	for _, known := range s.of {
		if known == 0 {
			known = steps
		}
		sum += known
	}
	return sum
}
