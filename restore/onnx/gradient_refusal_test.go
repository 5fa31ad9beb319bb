package onnx_test

import (
	"errors"
	"strings"
	"testing"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxtest"
)

// A form that a rule does not cover is an error that names the operation and the form, never a wrong gradient.
func TestGradientRefusesForms(t *testing.T) {
	t.Parallel()
	type m = map[string]any
	x, q := normal(2, 4, 6, 6), normal(2, 3, 5, 4)
	head := normal(2, 3, 5, 4)
	mask := operand{value: func(g *onnx.Graph, _ uint32) onnx.Value {
		return g.Apply("Equal", onnx.Bool, ints(5, 5), nil, g.Const(onnxtest.Random(25, 1), 5, 5), g.Const(onnxtest.Random(25, 2), 5, 5))
	}}
	half := []operand{x, omitted(), given(1, 1, 0.5, 0.5)}
	for want, l := range map[string]layer{
		"auto_pad SAME":       apply("Conv", ints(2, 4, 6, 6), m{"auto_pad": "SAME"}, x, normal(4, 4, 3, 3)),
		"negative pads":       apply("Conv", ints(2, 4, 3, 4), m{"pads": ints(-1, 0, 0, 0)}, x, normal(4, 4, 3, 3)),
		"a window of 1":       apply("AveragePool", ints(2, 4, 3, 3), m{"kernel_shape": ints(2)}, x),
		"antialias 1":         apply("Resize", ints(2, 4, 3, 3), m{"mode": "linear", "antialias": 1}, half...).at(18),
		"not_larger":          apply("Resize", ints(2, 4, 3, 3), m{"keep_aspect_ratio_policy": "not_larger"}, half...).at(18),
		"tf_crop_and_resiz":   apply("Resize", ints(2, 4, 3, 3), m{"coordinate_transformation_mode": "tf_crop_and_resize"}, half...),
		"nearest_mode away":   apply("Resize", ints(2, 4, 3, 3), m{"nearest_mode": "away"}, half...),
		"mode spline":         apply("Resize", ints(2, 4, 3, 3), m{"mode": "spline"}, half...),
		"operator set 16":     apply("MaxPool", ints(2, 4, 3, 3), m{"kernel_shape": ints(2, 2), "strides": ints(2, 2)}, x).at(15),
		"training_mode":       apply("BatchNormalization", x.dims, m{"training_mode": 1}, x, normal(4), normal(4), normal(4), positive(4)),
		"statistics that":     apply("BatchNormalization", x.dims, nil, x, normal(4), normal(4), normal(4), positive(4)).by(3),
		"scale of shape":      apply("LayerNormalization", x.dims, nil, x, normal(1)),
		"is_causal 1":         apply("Attention", q.dims, m{"is_causal": 1}, q, head, head).at(23),
		"qk_matmul_output":    apply("Attention", q.dims, m{"qk_matmul_output_mode": 1}, q, head, head).at(23),
		"softcap 2":           apply("Attention", q.dims, m{"softcap": float32(2)}, q, head, head).at(23),
		"a cache":             apply("Attention", q.dims, nil, q, head, head, omitted(), head, head).at(23),
		"a mask that depends": apply("Attention", q.dims, nil, q, head, head, normal(5, 5)).at(23).by(3),
		"truth values":        apply("Attention", q.dims, nil, q, head, head, mask).at(23),
		"scales that depend":  apply("Resize", ints(2, 4, 3, 3), nil, x, omitted(), normal(4)).by(2),
		"without q_num_heads": apply("Attention", ints(2, 5, 12), nil, normal(2, 5, 12), normal(2, 5, 12), normal(2, 5, 12)).at(23),
		"1 heads of keys":     apply("Attention", q.dims, nil, q, normal(2, 1, 5, 4), normal(2, 1, 5, 4)).at(23),
		"reduction add":       apply("ScatterElements", ints(3, 4), m{"reduction": "add"}, normal(3, 4), indices(ints(1, 4), 0, 1, 2, 0), normal(1, 4)).at(18),
		"batch_dims":          apply("GatherND", ints(3), m{"batch_dims": 1}, normal(3, 4), indices(ints(3, 1), 2, 0, 2)),
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			_, _, _, _, _, err := l.gradient()
			if !errors.Is(err, onnx.ErrNoGradient) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), l.op) {
				t.Errorf("error %v, want ErrNoGradient that names %s and %q", err, l.op, want)
			}
		})
	}
}
