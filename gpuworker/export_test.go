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

// Hang returns the error of a solve with a number of items that hung.
func Hang(items int) error { return &hangError{stage: "solve", took: 1, limit: 1, items: items} }
