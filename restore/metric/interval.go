package metric

import "math"

// MeanCI returns the mean of values and half the width of its 95 % confidence interval
// by Student's t: the interval is mean ± half. To compare two methods pass the per-item
// differences. half is NaN for fewer than two values, and so is the mean for none.
func MeanCI(values []float64) (mean, half float64) {
	n := float64(len(values))
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	mean = sum / n
	if len(values) < 2 {
		return mean, math.NaN()
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return mean, student975(len(values)-1) * math.Sqrt(squares/(n-1)/n)
}

// student975 is the 0.975 quantile of Student's t distribution, to four decimals: a table for
// few degrees of freedom, then the Cornish-Fisher expansion around the normal quantile.
func student975(degrees int) float64 {
	table := [...]float64{
		12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
	}
	if degrees <= len(table) {
		return table[degrees-1]
	}
	const z = 1.959963984540054
	const z2 = z * z
	v := float64(degrees)
	return z * (1 + (z2+1)/(4*v) + ((5*z2+16)*z2+3)/(96*v*v) +
		(((3*z2+19)*z2+17)*z2-15)/(384*v*v*v) +
		((((79*z2+776)*z2+1482)*z2-1920)*z2-945)/(92160*v*v*v*v))
}
