package picture_test

import (
	"context"
	"fmt"

	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/picture"
)

// A noisy photograph is restored with the bundled prior.
func Example() {
	runtime, err := picture.OpenRuntime("cpu")
	check(err)
	defer func() { _ = runtime.Close() }()
	bundled, err := picture.OpenPrior("bundled")
	check(err)
	session, err := picture.Open(context.Background(), picture.Config{Prior: bundled, Runtime: runtime})
	check(err)
	defer func() { _ = session.Close() }()
	photograph := picture.Picture{
		Name: "camera", Measurement: picture.File{Path: "testdata/camera.png"},
		Task: item.Task{Name: operator.Denoise, Sigma: new(item.Sigma(0.1)), Method: "ddiff", Preset: "natural"},
	}
	for _, restored := range session.Restore(context.Background(), photograph) {
		check(restored.Err)
		fmt.Printf("%d×%d pixels in %d steps: %s\n", restored.Image.Width, restored.Image.Height, len(restored.Curves[item.CurveTimestep]), restored.Outcome)
	}
	// Output: 8×16 pixels in 2 steps: done
}

// An operator of one's own is a graph: here one that halves the light. Its gradient and its products for the data step follow from the graph.
func Example_operator() {
	halved := operator.Definition{
		Name: "halved", Label: "Half the light", Doc: "black stays black, white becomes grey", Linear: true,
		Build: func(operator.Shape, map[string]float64) (operator.Expression, error) {
			return operator.Expression{Forward: func(g *onnx.Graph, x, _ onnx.Value) onnx.Value {
				return g.Mul(x, g.Const([]float32{0.5}, 1))
			}}, nil
		},
	}
	runtime, err := picture.OpenRuntime("cpu")
	check(err)
	defer func() { _ = runtime.Close() }()
	bundled, err := picture.OpenPrior("bundled")
	check(err)
	session, err := picture.Open(context.Background(), picture.Config{
		Prior: bundled, Runtime: runtime, Methods: method.Builtin(), Operators: append(operator.Builtin(), halved), Unchecked: true,
	})
	check(err)
	defer func() { _ = session.Close() }()
	dark := picture.Picture{
		Name: "dark", Measurement: picture.File{Path: "testdata/camera.png"},
		Task: item.Task{Name: "halved", Sigma: new(item.Sigma(0.05)), Method: "diffpir", Preset: "natural", Steps: 4},
	}
	for _, restored := range session.Restore(context.Background(), dark) {
		check(restored.Err)
		fmt.Println(restored.Item.Task, restored.Outcome)
	}
	// Output: halved done
}

// check is what a program does with an error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
