package onnxruntime

// SetOpenVINOTolerance sets the largest difference of OpenVINO from the CPU provider, and returns the former one.
func SetOpenVINOTolerance(p Precision, largest float64) (was float64) {
	was, openVINOTolerances[p] = openVINOTolerances[p], largest
	return was
}
