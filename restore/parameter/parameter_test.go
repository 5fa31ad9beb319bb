package parameter_test

import (
	"errors"
	"maps"
	"math"
	"strings"
	"testing"

	"ddiff/restore/parameter"
)

var list = parameter.List{
	{Name: "std", Default: 3, Max: 64, Open: true},
	{Name: "factor", Default: 4, Min: 2, Max: 16, Integer: true},
	{Name: "margin", Default: 0, Max: 8},
}

func TestComplete(t *testing.T) {
	t.Parallel()
	got, err := list.Complete(map[string]float64{"std": 64, "margin": 8})
	if want := map[string]float64{"std": 64, "factor": 4, "margin": 8}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if got, err = list.Complete(nil); err != nil || got["margin"] != 0 || len(got) != 3 {
		t.Errorf("defaults %v, %v", got, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		value float64
		want  string
	}{
		{"std", 0, "std: 0 is outside (0, 64]"},
		{"std", math.NaN(), "std: NaN is outside (0, 64]"},
		{"std", math.Inf(1), "std: +Inf is outside"},
		{"factor", 2.5, "factor: 2.5 is outside integers in [2, 16]"},
		{"factor", 1, "factor: 1 is outside"},
		{"margin", -1, "margin: -1 is outside [0, 8]"},
		{"sdt", 1, "sdt: the parameters are [std factor margin]"},
	} {
		_, err := list.Complete(map[string]float64{c.name: c.value})
		if !errors.Is(err, parameter.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s = %g: error %v, want %q", c.name, c.value, err, c.want)
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	p := parameter.Parameter{Name: "rule", Choices: []string{"ddpm", "full"}}
	if err := p.CheckText("full"); err != nil {
		t.Error(err)
	}
	if err := p.CheckText("half"); !errors.Is(err, parameter.ErrInvalid) || !strings.Contains(err.Error(), `"half" is not ddpm or full`) {
		t.Errorf("error %v", err)
	}
}
