package method_test

import (
	"errors"
	"strings"
	"testing"

	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/parameter"
)

// TestAdmits: only settings that differentiate the decoder need its gradient.
func TestAdmits(t *testing.T) {
	t.Parallel()
	card := &prior.Card{Name: "ldm", Latent: &prior.Latent{NoGradient: `differentiate Shrink "s"`}}
	for mode, refused := range map[string]bool{"pixel_dc": false, "latent_dc": true} {
		s, err := method.Builtin().Resolve(method.Request{
			Method: "latent_ddiff", Preset: "ffhq", Task: "gaussian_deblur",
			Values: map[string]parameter.Value{"mode": parameter.Word(mode), "gamma0": parameter.Number(8)},
		}, 1000)
		must(t, err)
		err = named(t, "latent_ddiff").Info().Admits(s, card)
		if errors.Is(err, method.ErrSetting) != refused || refused && !strings.Contains(err.Error(), "ldm") {
			t.Errorf("%s: %v", mode, err)
		}
		if err := named(t, "latent_ddiff").Info().Admits(s, &prior.Card{Latent: &prior.Latent{}}); err != nil {
			t.Errorf("%s with a gradient: %v", mode, err)
		}
	}
}
