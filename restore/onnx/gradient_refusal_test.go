package onnx_test

import (
	"errors"
	"strings"
	"testing"

	"ddiff/restore/onnx"
)

// A form that a rule does not cover is an error that names the operation and the form, never a wrong gradient.
func TestGradientRefusesForms(t *testing.T) {
	t.Parallel()
	type m = map[string]any
	x := normal(2, 4, 6, 6)
	half := []operand{x, omitted(), given(1, 1, 0.5, 0.5)}
	for want, l := range map[string]layer{
		"auto_pad SAME":      apply("Conv", ints(2, 4, 6, 6), m{"auto_pad": "SAME"}, x, normal(4, 4, 3, 3)),
		"negative pads":      apply("Conv", ints(2, 4, 3, 4), m{"pads": ints(-1, 0, 0, 0)}, x, normal(4, 4, 3, 3)),
		"a window of 1":      apply("AveragePool", ints(2, 4, 3, 3), m{"kernel_shape": ints(2)}, x),
		"antialias 1":        apply("Resize", ints(2, 4, 3, 3), m{"mode": "linear", "antialias": 1}, half...).at(18),
		"not_larger":         apply("Resize", ints(2, 4, 3, 3), m{"keep_aspect_ratio_policy": "not_larger"}, half...).at(18),
		"tf_crop_and_resiz":  apply("Resize", ints(2, 4, 3, 3), m{"coordinate_transformation_mode": "tf_crop_and_resize"}, half...),
		"nearest_mode away":  apply("Resize", ints(2, 4, 3, 3), m{"nearest_mode": "away"}, half...),
		"mode spline":        apply("Resize", ints(2, 4, 3, 3), m{"mode": "spline"}, half...),
		"operator set 16":    apply("MaxPool", ints(2, 4, 3, 3), m{"kernel_shape": ints(2, 2), "strides": ints(2, 2)}, x).at(15),
		"training_mode":      apply("BatchNormalization", x.dims, m{"training_mode": 1}, x, normal(4), normal(4), normal(4), positive(4)),
		"statistics that":    apply("BatchNormalization", x.dims, nil, x, normal(4), normal(4), normal(4), positive(4)).by(3),
		"scale of shape":     apply("LayerNormalization", x.dims, nil, x, normal(1)),
		"scales that depend": apply("Resize", ints(2, 4, 3, 3), nil, x, omitted(), normal(4)).by(2),
		"reduction mul":      apply("ScatterElements", ints(3, 4), m{"reduction": "mul"}, normal(3, 4), indices(ints(1, 4), 0, 1, 2, 0), normal(1, 4)).at(18),
		"batch_dims":         apply("GatherND", ints(3), m{"batch_dims": 1}, normal(3, 4), indices(ints(3, 1), 2, 0, 2)),
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
