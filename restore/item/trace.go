package item

// Trace holds the solver's curves of one item by their names: those that the method declares, see ddiff methods, and [CurveTimestep]. Each has
// one value per step, in the order of the steps.
type Trace map[string][]float64

// CurveTimestep is the prior's time index t of each step.
const CurveTimestep = "timestep"
