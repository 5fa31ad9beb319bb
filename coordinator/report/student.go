package report

import "math"

// studentQuantile is the 0.975 quantile of Student's t with df >= 1 degrees of freedom, the factor of a two-sided 95 %
// interval.
func studentQuantile(df int) float64 {
	const closedFormLimit = 200
	if df > closedFormLimit {
		return studentExpansion(float64(df))
	}
	lo, hi := 1.9, 13.0 // the quantile falls from 12.706 at df = 1 to 1.960
	for hi-lo > 1e-13*hi {
		mid := (lo + hi) / 2
		if mid == lo || mid == hi {
			break
		}
		if studentCentral(mid, df) < 0.95 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}

// studentCentral is P(|T| <= t) in closed form (Abramowitz and Stegun 26.7.3 and 26.7.4).
func studentCentral(t float64, df int) float64 {
	theta := math.Atan(t / math.Sqrt(float64(df)))
	sin, cos := math.Sincos(theta)
	if df%2 == 1 {
		sum, term := 0.0, cos
		for k := 1; k < df; k += 2 {
			sum += term
			term *= cos * cos * float64(k+1) / float64(k+2)
		}
		return 2 / math.Pi * (theta + sin*sum)
	}
	sum, term := 0.0, 1.0
	for k := 0; k < df; k += 2 {
		sum += term
		term *= cos * cos * float64(k+1) / float64(k+2)
	}
	return sin * sum
}

// studentExpansion expands the quantile around the normal quantile (Abramowitz and Stegun 26.7.5). Above 200 degrees of
// freedom its error is below 1e-9.
func studentExpansion(df float64) float64 {
	const z = 1.959963984540054
	const (
		g1 = (z*z*z + z) / 4
		g2 = (5*z*z*z*z*z + 16*z*z*z + 3*z) / 96
		g3 = (3*z*z*z*z*z*z*z + 19*z*z*z*z*z + 17*z*z*z - 15*z) / 384
	)
	return z + g1/df + g2/(df*df) + g3/(df*df*df)
}
