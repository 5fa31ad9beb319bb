package gpuworker

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"testing"

	"ddiff/internal/fuzztest"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/solver"
)

// FuzzCheckpoint: any bytes behind a valid checksum, which is no secret, are a checkpoint that is stored as it was read, or an error, and need memory in proportion.
func FuzzCheckpoint(f *testing.F) {
	for _, c := range []*job.Checkpoint{
		{},
		{State: solver.State{Step: 2, Tensors: []solver.Tensor{{Name: "x", Data: []float32{1, 2}}}}, Precision: "bfloat16", Seconds: 0.5},
		{Curves: solver.Curves{Time: []int{1, 2}, Curves: []solver.Curve{{Name: "residual", Values: []float64{0.5}}}}},
	} {
		data, err := encodeCheckpoint(c, "own")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[sha256.Size:])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		sum := checksum("own", body)
		data := slices.Concat(sum[:], body)
		var c *job.Checkpoint // gob reads a message of any claimed length in pieces of 10 MiB
		var err error
		fuzztest.Limit(t, 32<<20+1024*len(data), func() { c, err = decodeCheckpoint(data, "own") })
		if err != nil {
			return
		}
		stored, err := encodeCheckpoint(c, "own")
		must(t, err)
		again, err := decodeCheckpoint(stored, "own")
		must(t, err)
		twice, err := encodeCheckpoint(again, "own")
		must(t, err)
		if !bytes.Equal(stored, twice) { // NaN differs from itself
			t.Errorf("%+v is read as %+v", c, again)
		}
	})
}
