package operator

import "ddiff/internal/restore/axis"

// SuperResolutionArea is the task of enlarging an image whose pixels were averaged.
const SuperResolutionArea = "super_resolution_area"

// superResolutionArea is y = R·x·Rᵀ: each value is the mean of factor×factor pixels.
func superResolutionArea() Definition {
	return enlarging(Definition{
		Label: "Super-resolution (area)", Doc: "means of squares of pixels",
	}, areaDown)
}

// areaDown is R: the mean of each run of pixels.
func areaDown(n, factor int) *axis.Band {
	return axis.NewBand(n/factor, n, func(i int, add func(int, float32)) {
		for j := range factor {
			add(i*factor+j, 1/float32(factor))
		}
	})
}
