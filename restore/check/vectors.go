package check

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ddiff/restore/raster"
)

// Vectors are reference inputs and outputs of a model, by the names of its ports.
type Vectors struct {
	// Precision of the model that they belong to: "fp32" or "fp16".
	Precision string
	// Inputs and Outputs have a batch as their first dimension.
	Inputs, Outputs map[string]*raster.Array
}

// VectorsBeside is the folder in which an exporter puts the vectors of a model file.
func VectorsBeside(model string) string { return strings.TrimSuffix(model, ".onnx") + ".vectors" }

// vectorsFile is vectors.json.
type vectorsFile struct {
	Precision string            `json:"precision"`
	Inputs    map[string]string `json:"inputs"`
	Outputs   map[string]string `json:"outputs"`
	SHA256    map[string]string `json:"sha256"`
}

// ReadVectors reads a folder with vectors.json, whose digests must be right, or an .npz file
// in which the arrays bear the names of the ports. outputs are those names of an .npz that
// are outputs. ErrVectors wraps every refusal.
func ReadVectors(path string, outputs []string) (*Vectors, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrVectors, path, err)
	}
	var v *Vectors
	if info.IsDir() {
		v, err = readFolder(path)
	} else {
		v, err = readNPZ(path, outputs)
	}
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrVectors, path, err)
	}
	if v.Precision != "fp32" && v.Precision != "fp16" {
		return nil, fmt.Errorf("%w %s: precision is %q, want fp32 or fp16", ErrVectors, path, v.Precision)
	}
	if len(v.Inputs) == 0 || len(v.Outputs) == 0 {
		return nil, fmt.Errorf("%w %s: no inputs, or none of the outputs %v", ErrVectors, path, outputs)
	}
	return v, nil
}

func readFolder(dir string) (*Vectors, error) {
	data, err := os.ReadFile(filepath.Join(dir, "vectors.json"))
	if err != nil {
		return nil, err
	}
	var f vectorsFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("vectors.json: %w", err)
	}
	v := &Vectors{Precision: f.Precision, Inputs: map[string]*raster.Array{}, Outputs: map[string]*raster.Array{}}
	for _, part := range []struct {
		files  map[string]string
		arrays map[string]*raster.Array
	}{{f.Inputs, v.Inputs}, {f.Outputs, v.Outputs}} {
		for _, port := range slices.Sorted(maps.Keys(part.files)) {
			name := part.files[port]
			if filepath.Base(name) != name {
				return nil, fmt.Errorf("%q is not a file beside vectors.json", name)
			}
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return nil, err
			}
			if digest(data) != f.SHA256[name] {
				return nil, fmt.Errorf("%s was altered: another SHA-256 than vectors.json says", name)
			}
			if part.arrays[port], err = array(name, data); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func readNPZ(path string, outputs []string) (v *Vectors, err error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, z.Close()) }()
	v = &Vectors{Precision: "fp32", Inputs: map[string]*raster.Array{}, Outputs: map[string]*raster.Array{}}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		data, err := io.ReadAll(io.LimitReader(r, 4*raster.DefaultMaxValues))
		if err = errors.Join(err, r.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		a, err := array(f.Name, data)
		if err != nil {
			return nil, err
		}
		port := strings.TrimSuffix(f.Name, ".npy")
		if slices.Contains(outputs, port) {
			v.Outputs[port] = a
		} else {
			v.Inputs[port] = a
		}
	}
	return v, nil
}

func array(name string, data []byte) (*raster.Array, error) {
	a, err := raster.DecodeNPY(data, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if i, ok := raster.Finite(a.Data); !ok {
		return nil, fmt.Errorf("%s: value %d is not a finite number", name, i)
	}
	return a, nil
}

// Deviation is how far values are from reference values.
type Deviation struct {
	// MaxAbs is the largest absolute difference.
	MaxAbs float64 `json:"max_abs"`
	// PSNR is 20·log₁₀(2·rms(reference)/rms(difference)) in dB, at most 200. The peak is
	// twice the reference's RMS: 2, the width of −1..1, for noise of unit variance.
	PSNR float64 `json:"psnr"`
}

// Deviate compares got with want, which have equal lengths.
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

// worse joins two deviations.
func (d Deviation) worse(e Deviation) Deviation {
	return Deviation{MaxAbs: max(d.MaxAbs, e.MaxAbs), PSNR: min(d.PSNR, e.PSNR)}
}

// Agreement is the result of comparing a model with its vectors.
type Agreement struct {
	Deviation
	// File is the deviation of the file as it is, where the comparison covers also the form
	// in which the solver takes it in.
	File      *Deviation `json:"file,omitempty"`
	Precision string     `json:"precision"`
	// OK: fp32 within MaxAbs, fp16 at PSNR or above.
	OK bool `json:"ok"`
}

// Limits say when a model agrees with its vectors.
type Limits struct {
	// MaxAbs is for fp32, in units of the reference's RMS where that is above 1. Default: 1e-4.
	MaxAbs float64
	// PSNR is for fp16, in dB. Default: 50.
	PSNR float64
}

// DefaultLimits are what the exporters are tested with.
func DefaultLimits() Limits { return Limits{MaxAbs: 1e-4, PSNR: 50} }

func digest(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }
