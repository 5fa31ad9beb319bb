package table

import (
	"math"
	"strconv"
	"strings"

	"ddiff/internal/report/statistic"
)

// Mean is the text of a mean.
func Mean(e statistic.Estimate, decimals int, missing string) string {
	if e.N == 0 {
		return missing
	}
	return Decimal(e.Mean, decimals)
}

// SignedMean is the text of a mean with a sign.
func SignedMean(e statistic.Estimate, decimals int, missing string) string {
	if e.N == 0 {
		return missing
	}
	return Signed(e.Mean, decimals)
}

// Half is the text of the half-width of an interval.
func Half(e statistic.Estimate, decimals int, missing string) string {
	if e.HalfWidth == nil {
		return missing
	}
	return Decimal(*e.HalfWidth, decimals)
}

// Measured has as many decimals as the interval allows, two digits of its half-width, and at most so many. half is empty without an interval.
func Measured(e statistic.Estimate, decimals int, signed bool) (mean, half string) {
	if h := e.HalfWidth; h != nil && *h > 0 {
		decimals = min(decimals, max(0, 1-int(math.Floor(math.Log10(*h*1.005))))) // 0.0997 is 0.10
		if half = Decimal(*h, decimals); strings.Trim(half, "0.") == "" {         // of values that are equal but for rounding
			half = ""
		}
	}
	if signed {
		return Signed(e.Mean, decimals), half
	}
	return Decimal(e.Mean, decimals), half
}

// Interval is the text of an interval, "-" without one.
func Interval(e statistic.Estimate, decimals int) string {
	if e.HalfWidth == nil {
		return "-"
	}
	return "[" + Signed(e.Mean-*e.HalfWidth, decimals) + ", " + Signed(e.Mean+*e.HalfWidth, decimals) + "]"
}

// Decimal never prints a negative zero.
func Decimal(v float64, decimals int) string {
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if s[0] == '-' {
		if rounded, err := strconv.ParseFloat(s, 64); err == nil && rounded == 0 {
			return s[1:]
		}
	}
	return s
}

// Signed has the sign of the value, also of one that is rounded to zero: an interval up to -0.00 excludes zero.
func Signed(v float64, decimals int) string {
	if v < 0 {
		return "-" + Decimal(-v, decimals)
	}
	return "+" + Decimal(v, decimals)
}

// CSVFigure formats a figure of results.csv.
func CSVFigure(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// CSVFloat formats a figure as [strconv.FormatFloat] does; an undefined one is empty.
func CSVFloat(v float64, format byte, precision int) Number {
	if !statistic.Defined(v) {
		return ""
	}
	return Number(strconv.FormatFloat(v, format, precision, 64))
}
