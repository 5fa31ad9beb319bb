package onnxruntime

// ProbeBlocked compares a small network in blocks of some channels with one without.
func (r *Runtime) ProbeBlocked(channels int) error { return r.probeBlocked(channels) }
