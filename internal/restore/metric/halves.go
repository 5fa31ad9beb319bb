package metric

// halves sets a and b to (x + y)/2 − 1/2 and (x − y)/2 of the values of two images, clipped to [-1, 1] and mapped to [0, 1].
func halves(a, b, x, y []float32) {
	a, b, y = a[:len(x)], b[:len(x)], y[:len(x)]
	for i := halvesFast(a, b, x, y); i < len(x); i++ {
		u, v := clip(x[i]), clip(y[i])
		a[i], b[i] = (u+v)*0.25, (u-v)*0.25
	}
}

// clip limits a finite value to [-1, 1].
func clip(v float32) float32 {
	if v > 1 {
		return 1
	}
	if v < -1 {
		return -1
	}
	return v
}

// unit clips v to [-1, 1] and maps it to [0, 1].
func unit(v float32) float64 { return (float64(clip(v)) + 1) / 2 }
