//go:build !amd64

package metric

func halvesFast(_, _, _, _ []float32) int { return 0 }

func squaresFast([]float32, float64) (sums [4]float64, n int) { return sums, 0 }

func addPairsFast([]float64, []float32) int { return 0 }

func differenceFast([]float64, float64, [2][]float64, [2][]float64, [2][]float64) int { return 0 }

func (s *ssimScratch) filterDownFast(int) int { return 0 }

func (s *ssimScratch) compareFast() int { return 0 }
