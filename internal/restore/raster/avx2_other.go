//go:build !amd64

package raster

func addFast([]float64, float64, []float32) int { return 0 }

func finiteFast([]float32) int { return 0 }

func samples8Fast([]byte, []float32, int) int { return 0 }

func filterPaethFast(_, _, _ []byte, _ int) (n, repeats int) { return 0, 0 }
