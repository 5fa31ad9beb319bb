package gpuworker

import "context"

// failingSolver is a restorer whose device fails.
type failingSolver struct {
	restorer
	err error
}

func (f failingSolver) solve(_ context.Context, tasks []*task) (int, error) { return len(tasks), f.err }

// FailSolves makes every solve of a worker return an error.
func (w *Worker) FailSolves(err error) { w.restorer = failingSolver{w.restorer, err} }
