package modelfile_test

import (
	"errors"
	"math"
	"os"
	"testing"

	"ddiff/internal/restore/onnx/modelfile"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// modelOf reads a model of the folder prior.
func modelOf(t testing.TB, name string) *modelfile.Model {
	t.Helper()
	data, err := os.ReadFile("../../../../internal/restore/prior/" + name)
	must(t, err)
	m, err := modelfile.ReadModel(data)
	must(t, err)
	return m
}

// farthest returns the largest difference of two results, NaN if some element is none, and the largest absolute value of the first.
func farthest(want, got []float32) (difference, largest float64) {
	for i, v := range want {
		difference = max(difference, math.Abs(float64(v-got[i])))
		largest = max(largest, math.Abs(float64(v)))
	}
	return difference, largest
}

func TestReadModelRefuses(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../../../internal/restore/prior/bundled/prior.onnx")
	must(t, err)
	for name, b := range map[string][]byte{
		"empty": nil, "text": []byte("hello, world"), "cut": data[:len(data)/2], "PNG": []byte("\x89PNG\r\n\x1a\n"),
	} {
		if _, err := modelfile.ReadModel(b); !errors.Is(err, modelfile.ErrModel) {
			t.Errorf("%s: error %v, want ErrModel", name, err)
		}
	}
}
