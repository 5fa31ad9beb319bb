package job

import (
	"errors"
	"math/bits"

	"ddiff/internal/restore/onnx/onnxruntime"
)

// Parts solves jobs of one plan, as many of those left at a time as size says. A failed batch is solved again: in halves where memory is short, else job by job,
// so that a bad job does not affect the others; unless the error is final. done gets each job once, with the error of its last attempt, and ends Parts by an error.
func Parts[J any](jobs []J, size func(left []J) int, solve func([]J) error, final func(error) bool, done func([]J, error) error) error {
	for len(jobs) > 0 {
		n := size(jobs)
		err := solve(jobs[:n])
		if err == nil || n == 1 || final(err) {
			err = done(jobs[:n], err)
		} else {
			most := 1
			if errors.Is(err, onnxruntime.ErrMemory) {
				most = n / 2
			}
			err = Parts(jobs[:n], func(left []J) int { return min(most, size(left)) }, solve, final, done)
		}
		if err != nil {
			return err
		}
		jobs = jobs[n:]
	}
	return nil
}

// Together is the default number of images that are solved together by a provider. On a processor more of them save little, and the last ones often
// need a model of another size, whose compilation takes as long as several pictures.
func Together(provider string) int {
	if provider == onnxruntime.ProviderCPU || provider == onnxruntime.ProviderOpenVINO {
		return 2
	}
	return 4
}

// PowerOfTwo is the largest power of two that is at most n, from 1 on: batches of such sizes need few compiled models.
func PowerOfTwo(n int) int { return 1 << (bits.Len(uint(n)) - 1) }
