//go:build !amd64

package metric

func (s *ssimScratch) filterDownFast(int) int { return 0 }

func (s *ssimScratch) filterAcrossFast(_, _ []float64) int { return 0 }
