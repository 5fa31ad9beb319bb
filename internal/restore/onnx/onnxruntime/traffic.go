package onnxruntime

import "sync/atomic"

// traffic counts the bytes that calls copied between the host and a GPU.
type traffic struct{ up, down atomic.Int64 }

func (t *traffic) add(inputs, outputs []*Tensor) {
	for _, x := range inputs {
		t.up.Add(x.bytes())
	}
	for _, x := range outputs {
		t.down.Add(x.bytes())
	}
}

// Traffic returns the number of bytes that sessions have copied to the GPU and back. It stays 0 on the CPU, whose memory is the host's.
func (r *Runtime) Traffic() (up, down int64) { return r.traffic.up.Load(), r.traffic.down.Load() }
