package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ddiff/internal/regular"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/raster"
)

// Vectors are reference inputs and outputs of a model, by port name.
type Vectors struct {
	// Precision of the model: "float32" or "float16".
	Precision string
	// Inputs and Outputs have the batch as their first dimension.
	Inputs, Outputs map[string]*raster.Array
}

// MaxVectorBytes limits the arrays of vectors together, uncompressed.
const MaxVectorBytes int64 = 256 << 20

// VectorsPath returns the folder to which exporters write the vectors of a model file.
func VectorsPath(model string) string { return strings.TrimSuffix(model, ".onnx") + ".vectors" }

// checkVectors compares n with the vectors of its file; nil without vectors.
func (n *network) checkVectors(ctx context.Context, rt *onnxruntime.Runtime) (*Agreement, error) {
	v, err := readVectors(n.file)
	if err != nil || v == nil {
		return nil, err
	}
	return n.compare(ctx, rt, v)
}

// vectorsFile is the content of vectors.json.
type vectorsFile struct {
	Precision string            `json:"precision"`
	Inputs    map[string]string `json:"inputs"`
	Outputs   map[string]string `json:"outputs"`
	SHA256    map[string]string `json:"sha256"`
}

// readVectors reads the folder of a model with vectors.json and checks its digests; nil without a folder. ErrVectors wraps all errors.
func readVectors(model string) (*Vectors, error) {
	path := VectorsPath(model)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	v, err := readFolder(path)
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrVectors, path, err)
	}
	if v.Precision != "float32" && v.Precision != "float16" {
		return nil, fmt.Errorf("%w %s: precision is %q, want float32 or float16", ErrVectors, path, v.Precision)
	}
	if len(v.Inputs) == 0 || len(v.Outputs) == 0 {
		return nil, fmt.Errorf("%w %s: no inputs, or no outputs", ErrVectors, path)
	}
	return v, nil
}

func readFolder(dir string) (*Vectors, error) {
	data, err := regular.Read(filepath.Join(dir, "vectors.json"), regular.MaxConfigBytes)
	if err != nil {
		return nil, err
	}
	var f vectorsFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("vectors.json: %w", err)
	}
	v := &Vectors{Precision: f.Precision, Inputs: map[string]*raster.Array{}, Outputs: map[string]*raster.Array{}}
	left := MaxVectorBytes
	for _, part := range []struct {
		files  map[string]string
		arrays map[string]*raster.Array
	}{{f.Inputs, v.Inputs}, {f.Outputs, v.Outputs}} {
		for _, port := range slices.Sorted(maps.Keys(part.files)) {
			name := part.files[port]
			if filepath.Base(name) != name {
				return nil, fmt.Errorf("vectors.json: %q must name a file in the same folder", name)
			}
			data, err := regular.Read(filepath.Join(dir, name), left)
			if errors.Is(err, regular.ErrTooLarge) {
				return nil, fmt.Errorf("%s: %w", name, errVectorBytes)
			} else if err != nil {
				return nil, err
			}
			left -= int64(len(data))
			if regular.SHA256(data) != f.SHA256[name] {
				return nil, fmt.Errorf("%s was altered: its SHA-256 differs from vectors.json; export it again", name)
			}
			if part.arrays[port], err = decodeArray(name, data); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// errVectorBytes: the arrays exceed MaxVectorBytes.
var errVectorBytes = fmt.Errorf("the arrays together exceed %d MiB; export vectors of smaller images", MaxVectorBytes>>20)

func decodeArray(name string, data []byte) (*raster.Array, error) {
	a, err := raster.DecodeNPY(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if i, ok := raster.Finite(a.Data); !ok {
		return nil, fmt.Errorf("%s: value %d is not finite", name, i)
	}
	return a, nil
}

// Deviation is the difference of values from reference values.
type Deviation struct {
	// MaxAbs is the largest absolute difference.
	MaxAbs float64 `json:"max_abs"`
	// PSNR is 20·log₁₀(2·rms(reference)/rms(difference)) in dB, at most 200. The peak is twice the reference's RMS,
	// which for noise of unit variance is 2, the width of −1..1.
	PSNR float64 `json:"psnr"`
}

// Deviate compares got with want, which must have equal lengths.
func Deviate(got, want []float32) Deviation {
	var d Deviation
	var signal, noise float64
	for i, w := range want {
		e := math.Abs(float64(got[i]) - float64(w))
		d.MaxAbs = max(d.MaxAbs, e)
		noise += e * e
		signal += float64(w) * float64(w)
	}
	d.PSNR = 200
	if noise > 0 {
		d.PSNR = min(d.PSNR, 10*math.Log10(4*signal/noise))
	}
	return d
}

// max returns the larger deviation in each field.
func (d Deviation) max(e Deviation) Deviation {
	return Deviation{MaxAbs: max(d.MaxAbs, e.MaxAbs), PSNR: min(d.PSNR, e.PSNR)}
}

// Agreement is the result of comparing a model with its vectors.
type Agreement struct {
	Deviation
	// File is the deviation of the unmodified file, if the comparison also covers the form that the solver inlines.
	File      *Deviation `json:"file,omitempty"`
	Precision string     `json:"precision"`
	// OK: the deviation is within the limits.
	OK bool `json:"ok"`
}
