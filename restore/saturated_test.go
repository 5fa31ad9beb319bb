package restore_test

import (
	"testing"

	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// A dark photograph ends with wrongly saturated entries if their gradient is 0, and explains its measurement with the rule
// beyond_noise.
func TestSaturatedEntriesReturn(t *testing.T) {
	if testing.Short() {
		t.Skip("restores many images: make test-all")
	}
	t.Parallel()
	e := engine(t)
	op := effectOperator(t, operator.HDR)
	dark := photographs(t, e, op)[3:4] // hubble_deep_field
	ratio := map[string]float64{}
	for _, rule := range []string{"never", "beyond_noise"} {
		cfg := resolve(t, method.Request{Method: "ddiff", Preset: "gradient", Task: operator.HDR, Steps: 100,
			Values: map[string]parameter.Value{"recover": parameter.Word(rule)}})
		psnr, square := restored(t, e, op, cfg, dark)
		ratio[rule] = square / (effectSigma * effectSigma)
		t.Logf("%s: mean square residual %.2f σ², %.2f dB", rule, ratio[rule], psnr)
	}
	if !(ratio["never"] > 5) || !(ratio["beyond_noise"] < 1.5) {
		t.Errorf("residuals of %v σ², want more than 5 with never and less than 1.5 with beyond_noise", ratio)
	}
}
