package job

import (
	"errors"
	"fmt"

	"ddiff/restore/item"
	"ddiff/restore/metric"
	"ddiff/restore/raster"
)

// Score computes the item's metrics.
func (j *Job) Score() (item.Metrics, error) {
	var m item.Metrics
	observed := func(v []float32) []float32 { return j.Op.Observed(v, j.Problem.Draw) }
	seen := observed(j.Problem.Y)
	variance := j.noise().Variance(seen)
	residual, err := metric.Residual(seen, observed(j.applied), variance)
	if err != nil {
		return m, fmt.Errorf("score residual: %w", err)
	}
	m.Residual = &residual
	if j.Item.Photons > 0 {
		m.NoiseVariance = &variance
	}
	if j.truth == nil {
		return m, nil
	}
	if m.PSNR, m.SSIM, err = compare(j.truth, j.Restored()); err != nil {
		return m, err
	}
	if m.PSNRLuma, m.HaarPSI, err = perceptual(j.truth, j.Restored()); err != nil {
		return m, err
	}
	if j.baseline = j.Op.Baseline(j.Problem.Y); j.baseline != nil {
		if m.BaselinePSNR, m.BaselineSSIM, err = compare(j.truth, j.baseline); err != nil {
			return m, err
		}
	}
	return m, nil
}

// compare returns PSNR and SSIM of an image. SSIM is nil when the image is smaller than the window of the metric.
func compare(truth, other *raster.Image) (psnr, ssim *float64, err error) {
	p, err := metric.PSNR(truth, other)
	if err != nil {
		return nil, nil, fmt.Errorf("score PSNR: %w", err)
	}
	s, err := metric.SSIM(truth, other)
	if errors.Is(err, metric.ErrTooSmall) {
		return &p, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("score SSIM: %w", err)
	}
	return &p, &s, nil
}

// perceptual returns the PSNR of the luma and HaarPSI. Each is nil for an image to which the metric does not apply.
func perceptual(truth, other *raster.Image) (luma, haarPSI *float64, err error) {
	for _, m := range []struct {
		name  string
		score func(x, y *raster.Image) (float64, error)
		into  **float64
	}{{"PSNR of the luma", metric.PSNRLuma, &luma}, {"HaarPSI", metric.HaarPSI, &haarPSI}} {
		v, err := m.score(truth, other)
		switch {
		case err == nil:
			*m.into = &v
		case !errors.Is(err, metric.ErrTooSmall) && !errors.Is(err, metric.ErrShape):
			return nil, nil, fmt.Errorf("score %s: %w", m.name, err)
		}
	}
	return luma, haarPSI, nil
}
