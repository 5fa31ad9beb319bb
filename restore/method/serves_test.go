package method_test

import (
	"errors"
	"strings"
	"testing"

	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// TestServes: a method that refuses a task is refused with its name, the task, the reason and the methods that work in the prior's
// space and restore the task.
func TestServes(t *testing.T) {
	t.Parallel()
	pixels, latents := &prior.Card{Name: "p"}, &prior.Card{Name: "l", Latent: &prior.Latent{}}
	var all method.Set
	for _, task := range operator.Builtin() {
		for _, info := range all.Infos() {
			card := pixels
			if info.Latent {
				card = latents
			}
			err := all.Serves(info.Name, task, card)
			if info.Refuses == nil || info.Refuses(task) == "" {
				if err != nil {
					t.Errorf("%s is refused for %s: %v", info.Name, task.Name, err)
				}
				continue
			}
			if !errors.Is(err, method.ErrSetting) {
				t.Fatalf("%s for %s: error %v, want ErrSetting", info.Name, task.Name, err)
			}
			_, able, _ := strings.Cut(err.Error(), "; methods that can: ")
			names := strings.Split(able, ", ")
			for _, part := range []string{info.Name, task.Name, info.Refuses(task)} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not name %s", err, part)
				}
			}
			for _, other := range all.Infos() {
				can := other.Latent == info.Latent && (other.Refuses == nil || other.Refuses(task) == "")
				named := false
				for _, n := range names {
					named = named || n == other.Name
				}
				if can != named {
					t.Errorf("%q names %s: %v, want %v", err, other.Name, named, can)
				}
			}
		}
	}
	if err := all.Serves("ddrm", operator.Definition{Name: operator.HDR}, pixels); err == nil {
		t.Error("ddrm is not refused for hdr")
	}
	if err := all[:0].Serves("unheard-of", operator.Definition{Name: operator.HDR}, pixels); !errors.Is(err, method.ErrSetting) {
		t.Errorf("an unknown method: error %v", err)
	}
}
