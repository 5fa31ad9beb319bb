package method

import (
	"maps"
	"slices"

	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// ddiffFast has the rows of natural with fewer steps, and with a step size, b or end of the noise for them. They were chosen on
// [fourPhotographs] at 64×64 with sigma 0.05, see docs/tuning.md. Phase retrieval, where single images succeed or fail by chance, and the
// tasks that are not the paper's have the rows of natural.
func ddiffFast() []Row {
	none, early := parameter.Word(parameter.None), parameter.Number(300)
	fewer := map[string]struct {
		steps     int
		gamma0, b float64
		t0        parameter.Value
	}{
		operator.SuperResolution: {50, 45, 0.5, parameter.Number(1)},
		operator.InpaintBox:      {35, 12, 1, none},
		operator.InpaintRandom:   {85, 6, 1, early},
		operator.GaussianDeblur:  {80, 8, 2, early},
		operator.MotionDeblur:    {140, 8, 1.5, early},
		operator.NonlinearDeblur: {75, 8, 1.5, early},
		operator.HDR:             {120, 5, 1, early},
	}
	var rows []Row
	for _, row := range ddiffNatural() {
		row.Preset = "fast"
		if f, ok := fewer[row.Task]; ok {
			row.Steps, row.Values = f.steps, maps.Clone(row.Values)
			row.Values["gamma0"], row.Values["b"], row.Values["t0"] = parameter.Number(f.gamma0), parameter.Number(f.b), f.t0
			row.ChosenOn = union(row.ChosenOn, fourPhotographs())
		}
		rows = append(rows, row)
	}
	return rows
}

// union returns a and the elements of b that a lacks.
func union(a, b []string) []string {
	return append(slices.Clone(a), slices.DeleteFunc(slices.Clone(b), func(s string) bool { return slices.Contains(a, s) })...)
}
