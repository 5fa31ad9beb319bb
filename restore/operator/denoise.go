package operator

import "ddiff/restore/onnx"

// Denoise is the task of removing noise.
const Denoise = "denoise"

// denoise is y = x: the measurement is the image with its noise.
func denoise() Definition {
	return Definition{
		Label: "Denoising", Doc: "the image itself, with noise",
		Linear: true, Identity: true, Local: true,
		Build: func(Shape, map[string]float64) (Expression, error) {
			return Expression{
				Forward: func(_ *onnx.Graph, x, _ onnx.Value) onnx.Value { return x },
				Adjoint: func(_ *onnx.Graph, w, _ onnx.Value) onnx.Value { return w },
			}, nil
		},
		SVD: func(Shape, map[string]float64) (*SVD, error) {
			return diagonalSVD(func(g *onnx.Graph, _ onnx.Value) onnx.Value { return g.Const([]float32{1}, 1, 1, 1, 1) }), nil
		},
	}
}
