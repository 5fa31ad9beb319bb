package method

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ddiff/restore/item"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// Named is a method of a [Set].
type Named struct {
	// Name is the name in campaign files and results, in lower case with underscores.
	Name string
	Method
}

// Info returns the declaration of the method with its name.
func (n Named) Info() Info {
	i := n.Method.Info()
	i.Name = n.Name
	return i
}

// Set is a list of methods. A nil Set stands for [Builtin]; append to Builtin to add a method.
type Set []Named

// Builtin lists the methods of the program.
func Builtin() Set {
	return Set{
		{"ddiff", ddiff{about: "Dual Ascent Diffusion", dual: true, noisy: true, exact: true}},
		{"ddiff_hqs", ddiff{about: "DDiff with the paper's step, without the dual variable", noisy: true}},
		{"diff_pnp_admm", ddiff{about: "DDiff with the paper's step, without noise", dual: true}},
		{"diff_pnp_hqs", ddiff{about: "DDiff with the paper's step, without noise and dual variable"}},
		{"dpir", dpir{}},
		{"diffpir", diffPIR{}},
		{"reddiff", redDiff{}},
		{"ddrm", ddrm{}},
		{"ddnm", ddnm{}},
		{"dcdp", dcdp{}},
		{"dps", dps{}},
		{"pigdm", piGDM{}},
		{"daps", daps{}},
		{"fast_dips", fastDIPS{}},
		{"pnpdm", pnpDM{}},
		{"sitcom", sitcom{}},
		{"pnp_flow", pnpFlow{}},
		{"flower", flower{}},
		{"dmplug", dmplug{}},
		{"latent_ddiff", latentDDiff{}},
		{"latent_daps", latentDAPS{}},
		{"psld", psld{}},
		{"resample", resample{}},
	}
}

// OtherTasks is the task of a row for tasks without a row of their own, as those of operators from files.
const OtherTasks = "*"

// Row holds the values of a preset for one task, or [OtherTasks]. Steps and parameters that it leaves out have their defaults.
type Row struct {
	Preset string                     `json:"preset"`
	Task   string                     `json:"task"`
	Steps  int                        `json:"steps"`
	Values map[string]parameter.Value `json:"values"`
	// ChosenOn has the SHA-256 of the image files with which the values were chosen. Empty: unknown.
	ChosenOn []string `json:"chosen_on,omitempty"`
}

// Row returns the row of a preset for a task, if there is one.
func (i Info) Row(preset, task string) (Row, bool) {
	for _, name := range []string{task, OtherTasks} {
		at := slices.IndexFunc(i.Rows, func(r Row) bool { return r.Preset == preset && r.Task == name })
		if at >= 0 {
			return i.Rows[at], true
		}
	}
	return Row{}, false
}

// Unset returns the value of a parameter without one of a campaign: that of the preset's row for the task, or the default.
func (i Info) Unset(name, preset, task string) parameter.Value {
	row, _ := i.Row(preset, task)
	if v, ok := row.Values[name]; ok {
		return v
	}
	p, _ := i.Parameters.Find(name)
	return p.Start()
}

// All returns the methods, those of Builtin for a nil set.
func (s Set) All() Set {
	if s == nil {
		return Builtin()
	}
	return s
}

// Infos returns the declarations of all methods.
func (s Set) Infos() []Info {
	var out []Info
	for _, m := range s.All() {
		out = append(out, m.Info())
	}
	return out
}

// Names returns the names of all methods.
func (s Set) Names() []string {
	var out []string
	for _, m := range s.All() {
		out = append(out, m.Name)
	}
	return out
}

// Presets returns the names of all presets, in the order in which the methods declare them.
func (s Set) Presets() []string {
	var out []string
	for _, m := range s.Infos() {
		for _, r := range m.Rows {
			if !slices.Contains(out, r.Preset) {
				out = append(out, r.Preset)
			}
		}
	}
	return out
}

// HasPreset reports whether a method has a row of a preset.
func (s Set) HasPreset(name string) bool {
	return slices.ContainsFunc(s.All(), func(m Named) bool {
		return slices.ContainsFunc(m.Info().Rows, func(r Row) bool { return r.Preset == name })
	})
}

// Find returns a method by name, or ErrSetting.
func (s Set) Find(name string) (Named, error) {
	for _, m := range s.All() {
		if m.Name == name {
			return m, nil
		}
	}
	return Named{}, fmt.Errorf("%w method: %q is none of %v", ErrSetting, name, s.Names())
}

// Request asks for the settings of a run.
type Request struct {
	Method, Preset, Task string
	// Sigma is the standard deviation of the measurement noise, with photons that of a mid-grey entry: the default of [Info.NoiseStd] within the parameter's range.
	// Nil: unknown.
	Sigma *float64
	// Steps replaces the preset's number of steps unless it is 0.
	Steps int
	// Values replace those of the preset. Values of parameters that the method does not have are ignored: they
	// belong to another method of the campaign.
	Values map[string]parameter.Value
}

// RequestOf asks for the settings of a task with one method. A noise level that is yet to be estimated is unknown.
func RequestOf(t item.Task) Request {
	r := Request{Method: t.Method, Preset: t.Preset, Task: t.Name, Steps: t.Steps, Values: t.Solver}
	if t.Sigma != nil && *t.Sigma != item.SigmaAuto {
		r.Sigma = (*float64)(t.Sigma)
		if t.Photons != nil {
			r.Sigma = new(operator.Noise{Sigma: *r.Sigma, Photons: *t.Photons}.Level())
		}
	}
	return r
}

// Resolve returns complete and valid settings for a prior's schedule of total time indices: the defaults of the
// method, replaced by the row of preset and task and by the values of the request, for the parameters that the settings have. The error wraps ErrSetting, also for a
// required parameter without a value.
func (s Set) Resolve(r Request, total int) (Settings, error) {
	m, err := s.Find(r.Method)
	if err != nil {
		return Settings{}, err
	}
	info := m.Info()
	if !s.HasPreset(r.Preset) {
		return Settings{}, fmt.Errorf("%w preset: %q is none of %v", ErrSetting, r.Preset, s.Presets())
	}
	out := Settings{Method: info.Name, Steps: info.Steps}
	values := map[string]parameter.Value{}
	var have []string // presets with a row for the task
	for _, row := range info.Rows {
		if row.Task == r.Task {
			have = append(have, row.Preset)
		}
	}
	if row, ok := info.Row(r.Preset, r.Task); ok {
		out.Steps = cmp.Or(row.Steps, info.Steps)
		maps.Copy(values, row.Values)
	}
	maps.Copy(values, r.Values)
	if r.Steps != 0 {
		out.Steps = r.Steps
	}
	for _, p := range info.Parameters {
		if !out.Has(p) {
			continue
		}
		v, ok := values[p.Name]
		if !ok && slices.Contains(info.Required, p.Name) {
			return Settings{}, missing(r, p.Name, have)
		}
		switch {
		case ok:
		case r.Sigma != nil && p.Name == info.NoiseStd:
			v = parameter.Number(min(max(*r.Sigma, p.Min), p.Max))
		default:
			v = p.Start()
		}
		if p.Off != "" && v.Word == parameter.None {
			v = parameter.Number(float64(total - 1))
		}
		out.Values = append(out.Values, Setting{p.Name, v})
	}
	return out, out.Check(info, total)
}

// missing reports that neither the preset nor the request has a required value; have names the presets with a row for the
// task.
func missing(r Request, name string, have []string) error {
	remedy := "no preset has one; set it under solver"
	if len(have) > 0 {
		remedy = fmt.Sprintf("set it under solver, or choose a preset that has one: %s", strings.Join(have, ", "))
	}
	return fmt.Errorf("%w %s: preset %s has no value for method %s and task %s: %s", ErrSetting, name, r.Preset, r.Method, r.Task, remedy)
}
