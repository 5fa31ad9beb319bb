package tune

import "ddiff/internal/report/statistic"

// The states of a setting at the end of a race.
const (
	StateChosen  = "chosen"  // it won
	StateLost    = "lost"    // it ran on as many images as the winner, and another one was better
	StateStopped = "stopped" // it was stopped early, by its difference from the leader
	StateFailed  = "failed"  // it was stopped early, or lost, because it failed on an image
)

// Standing is the result of one setting in a race.
type Standing struct {
	Key   string `json:"key"`
	State string `json:"state"`
	// Round is the round after which the setting was stopped, from 1; 0 if it ran to the end.
	Round int `json:"round,omitempty"`
	// Images is the number of tuning images on which it ran, NotRun that of the others.
	Images int `json:"images"`
	NotRun int `json:"not_run"`
	// Value is the mean of the objective over these images.
	Value statistic.Estimate `json:"value"`
	// Difference is the mean of setting - Against, paired by image. Against is the leader of the round in which the setting was
	// stopped, or the winner. Nil for the winner.
	Difference *statistic.Estimate `json:"difference,omitempty"`
	Against    string              `json:"against,omitempty"`
	// Failed has the names of the images on which the setting failed.
	Failed []string `json:"failed,omitempty"`
}

// Rounds is the number of rounds so far.
func (r *Race) Rounds() int { return r.round }

// Images returns the images of the race in its order, without the unusable ones.
func (r *Race) Images() []Image { return r.images }

// Unusable returns the images that were left out, because every setting failed on them.
func (r *Race) Unusable() []Image { return r.unusable }

// Winner returns the key of the best setting so far. ok is false if no setting restored an image.
func (r *Race) Winner() (key string, ok bool) {
	best := r.entrants[0]
	if r.round > 0 && len(best.defined()) == 0 {
		return "", false
	}
	return best.Key, true
}

// Standings returns the results of all settings, the best first. Call it when the race is over.
func (r *Race) Standings() []Standing {
	_, won := r.Winner()
	var out []Standing
	for i, e := range r.entrants {
		s := Standing{
			Key: e.Key, State: StateLost, Round: e.stopped, Images: len(e.values), NotRun: len(r.images) - len(e.values),
			Value: statistic.Mean(e.defined()), Failed: e.failed,
		}
		switch {
		case i == 0 && won:
			s.State = StateChosen
		case len(e.failed) > 0 || !won:
			s.State = StateFailed
		case e.stopped > 0:
			s.State = StateStopped
		}
		if i > 0 && e.against.N > 0 {
			against := e.against
			s.Difference, s.Against = &against, e.leader
		}
		out = append(out, s)
	}
	return out
}
