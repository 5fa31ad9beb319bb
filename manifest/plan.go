package manifest

// Plan has what the time of an item depends on, as far as a campaign says: items with equal plans take the same time on one worker.
type Plan struct {
	// Task and Method are the names in the item.
	Task, Method string
	settings     [32]byte // digest of the settings that change the work
}

// Plans returns the number of items of each plan that a row adds. Items of images with their own sizes have none.
func Plans(row Row, spec *Spec) map[Plan]int {
	out := map[Plan]int{}
	if spec.Dataset.Fit == FitPad {
		return out
	}
	for _, t := range rowTasks(row, spec) {
		settings, err := digest(struct {
			Operator  string
			Params    map[string]float64
			Steps     int
			Solver    Values
			Preset    string
			Prior     string
			Size      int
			Precision Precision
			Float32   []string
			Tile      string
			Overlap   *int
		}{t.Operator, t.Params, t.Steps, t.Solver, spec.Preset, spec.Prior, spec.Dataset.Size, spec.Precision, spec.Float32, spec.Tile, spec.Overlap})
		if err != nil { // NaN, which no valid campaign has
			continue
		}
		for _, method := range spec.methodsOf(t) {
			out[Plan{t.Name, method, settings}] += t.Runs
		}
	}
	return out
}
