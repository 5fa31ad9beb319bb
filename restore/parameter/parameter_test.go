package parameter_test

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
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
	if _, err = (parameter.List{}).Complete(map[string]float64{"std": 1}); !errors.Is(err, parameter.ErrInvalid) || !strings.Contains(err.Error(), "std: there is no parameter") {
		t.Errorf("without parameters: %v", err)
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

func TestWords(t *testing.T) {
	t.Parallel()
	rule := parameter.Parameter{Name: "rule", Choices: []string{"ddpm", "full"}}
	time := parameter.Parameter{Name: "t0", Time: true, Off: "no noise", Default: 300}
	always := parameter.Parameter{Name: "t_gamma", Time: true}
	for _, c := range []struct {
		p     parameter.Parameter
		value parameter.Value
		want  string // of the error, empty for none
	}{
		{rule, parameter.Word("full"), ""},
		{rule, parameter.Word("half"), "rule: half is not ddpm or full"},
		{rule, parameter.Number(1), "rule: 1 is not ddpm or full"},
		{time, parameter.Word("none"), ""},
		{time, parameter.Number(2000), ""},
		{time.Of(1000), parameter.Number(1000), ""},
		{time.Of(1000), parameter.Number(1001), "t0: 1001 is outside integers in [0, 1000] or none"},
		{time, parameter.Number(2.5), "t0: 2.5 is outside integers in [0, T] or none"},
		{time, parameter.Number(-1), "t0: -1 is outside"},
		{time, parameter.Word("never"), `t0: "never" is a text, want integers in [0, T] or none`},
		{always, parameter.Word("none"), `t_gamma: "none" is a text, want integers in [0, T]`},
		{list[0], parameter.Word("many"), `std: "many" is a text, want (0, 64]`},
		{list[0], parameter.Word("45"), `std: "45" is a text, want (0, 64]`},
	} {
		err := c.p.Check(c.value)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, parameter.ErrInvalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s = %v: error %v, want %q", c.p.Name, c.value, err, c.want)
		}
	}
	if got := rule.Start(); got != parameter.Word("ddpm") {
		t.Errorf("default %v, want the first choice", got)
	}
}

func TestValueJSONRefusals(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"null", `""`, "true", "[1]", "{}", "1e999"} {
		var v parameter.Value
		if err := json.Unmarshal([]byte(text), &v); err == nil {
			t.Errorf("%s: read as %v", text, v)
		}
	}
}

func TestValueJSON(t *testing.T) {
	t.Parallel()
	in := []parameter.Value{parameter.Number(0.1), parameter.Number(90), parameter.Word("none")}
	data, err := json.Marshal(in)
	if err != nil || string(data) != `[0.1,90,"none"]` {
		t.Fatalf("%s, %v", data, err)
	}
	var out []parameter.Value
	if err := json.Unmarshal(data, &out); err != nil || !slices.Equal(in, out) {
		t.Errorf("%v, %v; want %v", out, err, in)
	}
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	p := parameter.Parameter{Name: "lambda", Max: 10, Open: true, Schedule: true}
	for text, want := range map[string]string{
		"8 4 1": "", " 8  4": "", "8 0": "0 is outside (0, 10]", "8 x": `"x" in "8 x" is not a number`, "8 11": "11 is outside", "8": `"8" is a text`, "8 NaN": "NaN is outside",
	} {
		err := p.Check(parameter.Word(text))
		if want == "" && err != nil || want != "" && (!errors.Is(err, parameter.ErrInvalid) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	p.Schedule = false
	if p.Check(parameter.Word("8 4")) == nil {
		t.Error("a list is accepted where there is no schedule")
	}
	for share, want := range map[float64]float64{0: 8, 0.25: 6, 0.5: 4, 0.75: 2.5, 1: 1} {
		if got := parameter.Word("8 4 1").At(share); got != want {
			t.Errorf("at %g: %g, want %g", share, got, want)
		}
	}
	if got := parameter.Number(3).At(0.3); got != 3 {
		t.Errorf("a number: %g", got)
	}
}

// TestSpellings: several numbers have one spelling, however they are written.
func TestSpellings(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"8 4 0.5", " 8.0\t4  5e-1 "} {
		var read parameter.Value
		if err := json.Unmarshal([]byte(strconv.Quote(text)), &read); err != nil || read != parameter.Word("8 4 0.5") || read.Word != "8 4 0.5" {
			t.Errorf("%q: %+v, error %v", text, read, err)
		}
	}
	for _, text := range []string{"alternate", "8 x", "08"} {
		if v := parameter.Word(text); v.Word != text {
			t.Errorf("%q: %+v", text, v)
		}
	}
}
