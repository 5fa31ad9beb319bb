package method_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

const total = 1000

// named is a built-in method.
func named(t *testing.T, name string) method.Named {
	t.Helper()
	m, err := method.Builtin().Find(name)
	must(t, err)
	return m
}

func resolve(t *testing.T, r method.Request) method.Settings {
	t.Helper()
	s, err := method.Builtin().Resolve(r, total)
	must(t, err)
	return s
}

// The paper has no values of LatentDDiff for phase retrieval, and natural has no row of it.
func TestResolveMissingValue(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]method.Request{
		"task phase_retrieval: no preset has one": {Method: "latent_ddiff", Preset: "ffhq", Task: operator.PhaseRetrieval},
		"a preset that has one: ffhq, imagenet":   {Method: "latent_ddiff", Preset: "natural", Task: operator.HDR},
	} {
		if _, err := method.Builtin().Resolve(r, total); !errors.Is(err, method.ErrSetting) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	natural := method.Request{Method: "ddiff", Preset: "gradient", Task: operator.HDR}
	s := resolve(t, natural)
	if s.Steps != 150 || s.Number("t0") != 300 || s.Word("answer") != "x" || s.Number("gamma0") != 4 || s.Number("a") != 3.3 {
		t.Errorf("gradient, hdr: %+v", s)
	}
	natural.Steps = 7
	natural.Values = map[string]parameter.Value{"t0": parameter.Word(parameter.None), "gamma0": parameter.Number(9), "another's": parameter.Number(1)}
	if s, err := method.Builtin().Resolve(natural, 300); err != nil || s.Steps != 7 || s.Number("t0") != 299 || s.Number("gamma0") != 9 || len(s.Values) != 12 {
		t.Errorf("with values: %+v, %v", s, err)
	}
	// A task without a row has the defaults.
	if s := resolve(t, method.Request{Method: "ddiff_hqs", Preset: "ffhq", Task: "toy"}); s.Steps != 100 || s.Number("gamma0") != 8 || s.Word("sigma_rule") != "ddpm" {
		t.Errorf("task without a row: %+v", s)
	}
	for want, r := range map[string]method.Request{
		`method: "mcg" is none of [ddiff`:                             {Method: "mcg", Preset: "natural", Task: "hdr"},
		`preset: "faces" is none of [natural gradient ffhq imagenet]`: {Method: "ddiff", Preset: "faces", Task: "hdr"},
		"steps: 1001 is out of range, want 2 to 1000":                 {Method: "ddiff", Preset: "natural", Task: "hdr", Steps: 1001},
		"steps: 1 is out of range":                                    {Method: "ddiff", Preset: "natural", Task: "hdr", Steps: 1},
		"t_gamma: 1001 is outside integers in [0, 1000]": {Method: "ddiff", Preset: "gradient", Task: "hdr",
			Values: map[string]parameter.Value{"t_gamma": parameter.Number(1001)}},
	} {
		if _, err := method.Builtin().Resolve(r, total); !errors.Is(err, method.ErrSetting) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// bare is DDiff with a preset row that leaves out steps and values.
type bare struct{ method.Method }

func (b bare) Info() method.Info {
	i := b.Method.Info()
	i.Rows = []method.Row{{Preset: "natural", Task: "toy"}}
	return i
}

func TestRowWithoutValues(t *testing.T) {
	t.Parallel()
	s, err := append(method.Builtin(), method.Named{Name: "bare", Method: bare{named(t, "ddiff")}}).Resolve(method.Request{
		Method: "bare", Preset: "natural", Task: "toy", Values: map[string]parameter.Value{"gamma0": parameter.Number(9)},
	}, total)
	if err != nil || s.Steps != 100 || s.Number("gamma0") != 9 || s.Number("a") != 3.3 {
		t.Errorf("%+v, %v; want the defaults and gamma0 9", s, err)
	}
}

func TestSettingsJSON(t *testing.T) {
	t.Parallel()
	// The keys of settings from another program may be sorted; their order is kept.
	for _, text := range []string{
		`{"method":"ddiff","steps":100,"gamma0":45,"a":3.3,"b":0.5,"t_gamma":90,"t0":1,"sigma_rule":"full","gradient":"norm"}`,
		`{"method":"ddiff","steps":2,"zeta":0.25,"a":1e-7}`,
	} {
		var s method.Settings
		must(t, json.Unmarshal([]byte(text), &s))
		if got, err := json.Marshal(s); err != nil || string(got) != text {
			t.Errorf("%s, %v; want %s", got, err, text)
		}
	}
	for _, text := range []string{`[]`, `null`, `{"steps":"many"}`, `{"gamma0":[1]}`, `{"gamma0":1`, `3`} {
		var s method.Settings
		if err := json.Unmarshal([]byte(text), &s); err == nil {
			t.Errorf("%s: accepted as %+v", text, s)
		}
	}
}

func TestSettingsCheck(t *testing.T) {
	t.Parallel()
	good := resolve(t, method.Request{Method: "ddiff", Preset: "gradient", Task: operator.HDR})
	info := named(t, "ddiff").Info()
	num := parameter.Number
	lacking := good
	lacking.Values = good.Values[1:]
	other := good
	other.Method = "ddiff_hqs"
	for want, s := range map[string]method.Settings{
		"gamma0: NaN":      good.With("gamma0", num(math.NaN())),
		"a: +Inf":          good.With("a", num(math.Inf(1))),
		"b: -1":            good.With("b", num(-1)),
		"t_gamma: 0.5":     good.With("t_gamma", num(0.5)),
		"t0: -1":           good.With("t0", num(-1)),
		"sigma_rule: ddim": good.With("sigma_rule", parameter.Word("ddim")),
		"gradient: 3":      good.With("gradient", num(3)),
		"13 parameters":    good.With("zeta", num(1)),
		"is missing":       lacking,
		"recover: both":    good.With("recover", parameter.Word("both")),
		"lambda: has no effect with data_step: gradient; set data_step: exact, or leave lambda out": good.With("lambda", num(2)),
		`method: "ddiff_hqs"`:   other,
		"data_step: is missing": lacking.With("zeta", num(1)),
	} {
		if err := s.Check(info, total); !errors.Is(err, method.ErrSetting) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if err := good.Check(info, total); err != nil {
		t.Error(err)
	}
}

func TestLevels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		total, n int
		want     []int
	}{
		{10, 10, []int{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}},
		{1000, 2, []int{999, 0}},
		{1000, 5, []int{999, 749, 500, 250, 0}},
		{11, 3, []int{10, 5, 0}},
	} {
		levels, err := method.Levels(prior.Schedule{AlphaBar: make([]float64, c.total)}, c.n)
		var got []int
		for _, l := range levels {
			got = append(got, l.Time)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%d of %d times: %v, %v; want %v", c.n, c.total, got, err, c.want)
		}
	}
	for _, n := range []int{0, 1, 1001} {
		if _, err := method.Levels(prior.Schedule{AlphaBar: make([]float64, 1000)}, n); !errors.Is(err, method.ErrSetting) {
			t.Errorf("%d of 1000 times: error %v", n, err)
		}
	}
}

// The noise that a method assumes is the measurement's, within the parameter's range, unless the request states it.
func TestNoiseStd(t *testing.T) {
	t.Parallel()
	sigma := func(x float64) *float64 { return &x }
	for name, c := range map[string]struct {
		sigma *float64
		set   map[string]parameter.Value
		want  float64
	}{
		"unknown":   {nil, nil, 0.05},
		"known":     {sigma(0.2), nil, 0.2},
		"noiseless": {sigma(0), nil, 0.001},
		"stated":    {sigma(0.2), map[string]parameter.Value{"noise_std": parameter.Number(0.3)}, 0.3},
	} {
		s := resolve(t, method.Request{Method: "diffpir", Preset: "natural", Task: operator.HDR, Sigma: c.sigma, Values: c.set})
		if got := s.Number("noise_std"); got != c.want {
			t.Errorf("%s: noise_std %g, want %g", name, got, c.want)
		}
	}
}

// A parameter exists only with the choices of the preset or the campaign that have it.
func TestLacks(t *testing.T) {
	t.Parallel()
	word, number := parameter.Word, parameter.Number
	type values = map[string]parameter.Value
	for _, c := range []struct {
		name, method, preset, task string
		values                     values
		want                       string // "": it exists
	}{
		{"gamma0", "ddiff", "natural", operator.GaussianDeblur, values{"gamma0": number(20)},
			"with data_step: exact; set data_step: gradient, or leave gamma0 out"},
		{"gamma0", "ddiff", "natural", "sensor", values{"gamma0": number(20)},
			"with data_step: exact; set data_step: gradient, or leave gamma0 out"},
		{"gamma0", "ddiff", "natural", operator.GaussianDeblur, values{"data_step": word("gradient")}, ""},
		{"gamma0", "ddiff", "ffhq", operator.GaussianDeblur, nil, ""},
		{"gamma0", "ddiff_hqs", "natural", operator.GaussianDeblur, values{"data_step": word("exact")}, ""},
		{"gamma0", "latent_ddiff", "ffhq", operator.GaussianDeblur, nil, ""},
		{"lambda", "ddiff", "natural", operator.GaussianDeblur, nil, ""},
		{"lambda", "ddiff", "ffhq", operator.GaussianDeblur, nil, "with data_step: gradient; set data_step: exact, or leave lambda out"},
		{"noise_std", "ddiff", "ffhq", operator.HDR, nil, "with recover: never and data_step: gradient; set recover: beyond_noise or data_step: exact, or leave noise_std out"},
		{"noise_std", "ddiff", "ffhq", operator.HDR, values{"recover": word("beyond_noise")}, ""},
		{"t_start", "dpir", "natural", operator.Denoise, nil, "with start_at: noise; set start_at: time, or leave t_start out"},
		{"t_start", "dpir", "natural", operator.Denoise, values{"start_at": word("time")}, ""},
		{"start_noise", "ddiff", "ffhq", operator.Denoise, nil, "with data_step: gradient; set data_step: exact, or leave start_noise out"},
		{"zeta", "diffpir", "natural", operator.Denoise, nil, ""},
	} {
		m, err := method.Builtin().Find(c.method)
		if err != nil {
			t.Fatal(err)
		}
		s := resolve(t, method.Request{Method: c.method, Preset: c.preset, Task: c.task, Values: c.values})
		if got := s.Lacks(m.Info(), c.name); got != c.want {
			t.Errorf("%s of %s, %s, %s, %v: %q, want %q", c.name, c.method, c.preset, c.task, c.values, got, c.want)
		}
	}
	for _, m := range method.Builtin() {
		all := m.Info().Parameters
		for i, p := range all {
			for _, choice := range p.With {
				name, word, _ := strings.Cut(choice, "=")
				if owner, ok := all[:i].Find(name); !ok || !slices.Contains(owner.Choices, word) {
					t.Errorf("%s: %s exists with %s, which is no choice before it", m.Info().Name, p.Name, choice)
				}
			}
		}
	}
}

// Settings state the parameters that they have, and no others.
func TestSettingsOfChoices(t *testing.T) {
	t.Parallel()
	word := parameter.Word
	sigma := 0.1
	const before = `{"method":"ddiff","steps":1000,"data_step":"gradient","gamma0":3.5,"a":3.3,"b":0.1,"t_gamma":90,"gradient":"unit","t0":120,"sigma_rule":"ddpm"`
	for want, values := range map[string]map[string]parameter.Value{
		`,"answer":"x_t","recover":"never","mirror":"none"}`:                        {"noise_std": parameter.Number(0.2), "lambda": parameter.Number(3)},
		`,"answer":"x","recover":"never","mirror":"none"}`:                          {"answer": word("x")},
		`,"answer":"x_t","recover":"beyond_noise","noise_std":0.1,"mirror":"none"}`: {"recover": word("beyond_noise")},
		`,"answer":"x_t","recover":"beyond_noise","noise_std":0.2,"mirror":"none"}`: {"recover": word("beyond_noise"), "noise_std": parameter.Number(0.2)},
	} {
		s := resolve(t, method.Request{Method: "ddiff", Preset: "ffhq", Task: operator.HDR, Sigma: &sigma, Values: values})
		got, err := json.Marshal(s)
		if err != nil || string(got) != before+want {
			t.Errorf("%v: %s, %v; want %s", values, got, err, before+want)
		}
		var back method.Settings
		if err := json.Unmarshal(got, &back); err != nil || !reflect.DeepEqual(back, s) {
			t.Errorf("%s: read as %+v, %v", got, back, err)
		}
	}
}
