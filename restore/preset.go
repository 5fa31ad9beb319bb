package restore

import (
	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/parameter"
)

// Preset describes how the settings of a plan relate to a preset.
type Preset struct {
	// Steps is the preset's number of steps for the method and the task, the method's default without a row; 0 if the plan solves the data step otherwise, so
	// that its steps do other work.
	Steps int
	// Row: the preset has settings of the method for the task.
	Row bool
	// Foreign: the plan has all settings that the preset has for method and task, and these were chosen for another prior than the
	// engine's.
	Foreign bool
}

// Preset compares a plan with a preset; sigma is the noise of the measurement. The error wraps [method.ErrSetting].
func (e *Engine) Preset(p Plan, name string, sigma float64) (Preset, error) {
	settings, err := e.cfg.Methods.Resolve(method.Request{Method: p.Solver.Method, Preset: name, Task: p.Task, Sigma: &sigma}, e.prior.Schedule.Steps())
	if err != nil {
		return Preset{}, err
	}
	m, err := e.cfg.Methods.Find(p.Solver.Method)
	if err != nil {
		return Preset{}, err
	}
	row, ok := m.Info().Row(name, p.Task)
	out := Preset{Steps: settings.Steps, Row: ok}
	if !ok {
		return out, nil
	}
	// natural and gradient are for the project's priors. Which of the other priors a publication's preset belongs to is unknown.
	out.Foreign = (prior.Own()[e.prior.SHA256] != "") != (name == "natural" || name == "gradient")
	if p.Solver.Word("data_step") != settings.Word("data_step") {
		out.Steps = 0
	}
	for value := range row.Values {
		out.Foreign = out.Foreign && p.Solver.Value(value) == settings.Value(value)
	}
	return out, nil
}

// The settings with which a run fills lost pixels, see [Engine.Fill].
const (
	fillSteps  = 8
	fillLambda = 5
	fillNoise  = 0.2 // first noise level, at least fillFactor times that of y
	fillFactor = 4
)

// Fill returns a plan that fills lost pixels well. A method that begins at the noise of y, as in denoise, keeps there what its start has: it begins with more noise, and makes more
// steps.
func (e *Engine) Fill(p Plan) Plan {
	level := p.Solver.Number("noise_std")
	if p.Solver.Word("start_at") != "noise" || level <= 0 {
		return p
	}
	p.Solver = p.Solver.With("start_noise", parameter.Number(max(fillFactor, fillNoise/level))).With("lambda", parameter.Number(fillLambda))
	p.Solver.Steps = max(p.Solver.Steps, fillSteps)
	return p
}

// ScaleNoise returns a plan whose method takes the noise level of the measurement times a factor. Another level is a person's, and stays.
func (e *Engine) ScaleNoise(p Plan, level, factor float64) Plan {
	m, err := e.cfg.Methods.Find(p.Solver.Method)
	if err != nil {
		return p // which [Engine.Supports] reports
	}
	noise, _ := m.Info().Parameters.Find(m.Info().NoiseStd)
	for _, v := range p.Solver.Values {
		if v.Name == noise.Name && v.Value.Number == min(max(level, noise.Min), noise.Max) {
			p.Solver = p.Solver.With(v.Name, parameter.Number(min(max(level*factor, noise.Min), noise.Max)))
		}
	}
	return p
}
