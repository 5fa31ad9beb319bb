package method

import (
	"ddiff/restore/onnx"
	"ddiff/restore/parameter"
	"ddiff/restore/prior"
)

// The first times of a run that begins late.
const (
	startAtTime  = "time"
	startAtNoise = "noise"
)

// The images with which a run begins late.
const (
	startRough  = "rough"
	startFilled = "filled"
)

// lateStart are the parameters of a run that begins late, with an image made from y: at earlier times the measurement alone says more than the prior.
func lateStart() parameter.List {
	return parameter.List{
		{Name: "start_at", Choices: []string{startAtTime, startAtNoise}, Doc: "first time of the run: a time, or that of a noise level"},
		{Name: "t_start", With: []string{"start_at=" + startAtTime}, Time: true, Unit: "time index", Default: 500, Off: "from the last time",
			Doc: "first time of the run, steps − 1 if that is later"},
		{Name: "start_noise", With: []string{"start_at=" + startAtNoise}, Max: 1000, Open: true, Default: 1,
			Doc: "first noise level of the prior, as a factor of the measurement's, noise_std"},
		{Name: "start", Choices: []string{startRough, startFilled},
			Doc: "image that the run begins with: y or A⁺·y (rough), or with lost pixels filled from their neighbours"},
	}
}

// lateLevels are the levels of a run that begins late.
func lateLevels(s Settings, schedule prior.Schedule) ([]Level, error) {
	start := int(s.Number("t_start"))
	if s.Word("start_at") == startAtNoise {
		start = nearestTime(schedule, s.Number("start_noise")*s.Number("noise_std"), schedule.Steps())
	}
	return levelsFrom(schedule, start, s.Steps)
}

// begin returns the image that a run begins with.
func (b *Builder) begin(s Settings) onnx.Value {
	if s.Word("start") == startFilled {
		return b.Filled()
	}
	return b.Rough()
}
