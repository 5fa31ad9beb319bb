package run

import "sync"

// stepCount has the solver steps of restorations, which differ where settings follow from their pictures. Its methods may be called concurrently.
type stepCount struct {
	mu sync.Mutex
	of []int // by restoration; 0: not known yet
}

// all returns the steps of all restorations when those at some places have so many. Unknown ones count as these; of one that is made again the larger number
// counts.
func (s *stepCount) all(places []int, steps int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range places {
		s.of[i] = max(s.of[i], steps)
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
