package method

import (
	"slices"

	"ddiff/restore/onnx"
	"ddiff/restore/parameter"
)

// The first times of a run.
const (
	startAtLast  = "last"
	startAtTime  = "time"
	startAtNoise = "noise"
)

// The images with which a run begins late.
const (
	startNoise  = "noise" // no image
	startBlack  = "black"
	startRough  = "rough"
	startFilled = "filled"
)

// lateStart are the parameters of a run that begins late, with an image made from y: at earlier times the measurement alone says more than the prior.
func lateStart() parameter.List {
	return append(firstTime(startAtTime, startAtNoise), parameter.Parameter{
		Name: "start", Choices: []string{startRough, startFilled},
		Doc: "image that the run begins with: y or A⁺·y (rough), or with lost pixels filled from their neighbours",
	})
}

// firstTime are the parameters of the first time of a run, with these values of start_at, the default first.
func firstTime(at ...string) parameter.List {
	list := parameter.List{
		{Name: "start_at", Choices: at, Doc: "how the first time of the run is given"},
		{Name: "t_start", With: []string{"start_at=" + startAtTime}, Time: true, Unit: "time index", Default: 500, Off: "from the last time",
			Doc: "first time of the run, steps − 1 if that is later"},
	}
	if slices.Contains(at, startAtNoise) {
		list = append(list, parameter.Parameter{Name: "start_noise", With: []string{"start_at=" + startAtNoise}, Max: 1000, Open: true, Default: 1,
			Doc: "first noise level of the prior, as a factor of the measurement's, noise_std"})
	}
	return list
}

// first returns the first time of a run.
func first(s Settings, schedule Schedule) int {
	switch s.Word("start_at") {
	case startAtTime:
		return min(max(int(s.Number("t_start")), s.Steps-1), schedule.Steps()-1)
	case startAtNoise:
		return max(nearestTime(schedule, s.Number("start_noise")*s.Number("noise_std"), schedule.Steps()), s.Steps-1)
	}
	return schedule.Steps() - 1
}

// lateLevels are the levels of a run that begins late.
func lateLevels(s Settings, schedule Schedule) ([]Level, error) {
	return levelsFrom(schedule, first(s, schedule), s.Steps)
}

// begin returns the image that a run begins with.
func (b *Builder) begin(s Settings) onnx.Value {
	if s.Word("start") == startFilled {
		return b.Filled()
	}
	return b.Rough()
}
