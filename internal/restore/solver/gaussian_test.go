package solver

import (
	"context"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// held is a method with all steps at one time, with the full rule and without added noise: the next state is the step's
// clean value times √ᾱ.
type held struct {
	method.Method
	at, steps int
	clean     []string // scalars with √ᾱ
	none      []string // scalars with 0
}

func (h held) Plan(s method.Settings, schedule prior.Schedule, image operator.Shape) ([]method.Step, error) {
	plan, err := h.Method.Plan(s, schedule, image)
	if err != nil {
		return nil, err
	}
	hold := plan[len(plan)-1]
	hold.Time = h.at
	for _, name := range h.clean {
		hold.Scalars[name] = math.Sqrt(schedule.AlphaBar[h.at])
	}
	for _, name := range h.none {
		hold.Scalars[name] = 0
	}
	return slices.Repeat([]method.Step{hold}, h.steps), nil
}

// columns is A as a dense matrix, from the compiled operator.
func columns(t *testing.T, op *operator.Operator, draw []float32) [][]float64 {
	t.Helper()
	f, err := operator.NewForward(onnxtest.Runtime(t), op)
	must(t, err)
	defer f.Close()
	a := make([][]float64, op.MeasurementSize())
	for i := range a {
		a[i] = make([]float64, op.Image.Size())
	}
	e := make([]float32, op.Image.Size())
	for j := range e {
		e[j] = 1
		y, err := f.Apply(context.Background(), e, draw)
		must(t, err)
		for i, v := range y {
			a[i][j] = float64(v)
		}
		e[j] = 0
	}
	return a
}

// solveLinear solves a·x = b.
func solveLinear(a [][]float64, b []float64) []float64 {
	var x mat.VecDense
	if err := x.SolveVec(mat.NewDense(len(a), len(b), slices.Concat(a...)), mat.NewVecDense(len(b), b)); err != nil {
		panic(err)
	}
	return x.RawVector().Data
}
