package main

import (
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// toyOperator is an operator outside the program: it dims the image.
func toyOperator() operator.Definition {
	return operator.Definition{
		Name: "toy_operator", Label: "Toy operator", Doc: "the image at a lower contrast",
		Parameters: parameter.List{{Name: "contrast", Default: 0.5, Max: 1, Open: true, Doc: "factor of the image"}},
		Build: func(_ operator.Shape, p map[string]float64) (operator.Expression, error) {
			return operator.Expression{Forward: func(g *onnx.Graph, x, _ onnx.Value) onnx.Value {
				return g.Mul(x, g.Scalar(float32(p["contrast"])))
			}}, nil
		},
	}
}
