package onnxruntime

// ProbeBlocked compares a small network in blocks of some channels with one without.
func (r *Runtime) ProbeBlocked(channels int) error { return r.probeBlocked(channels) }

// SetOpenVINOTolerance sets the largest difference of OpenVINO from the CPU provider, and returns the former one.
func SetOpenVINOTolerance(p Precision, largest float64) (was float64) {
	was, openVINOTolerances[p] = openVINOTolerances[p], largest
	return was
}
