package tuner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"ddiff/internal/regular"
)

// curvesSchema is the version of the file format.
const curvesSchema = 1

// maxCurvesBytes limits the size of the file: a curve has about 2 KB.
const maxCurvesBytes = 16 << 20

// curvesFile is the content of a Tuner's file.
type curvesFile struct {
	Schema int     `json:"schema"`
	Curves []curve `json:"curves"`
}

// readCurves reads the file. It returns nothing when there is no file.
func readCurves(file string) (f curvesFile, err error) {
	data, err := regular.Read(file, maxCurvesBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return curvesFile{}, fmt.Errorf("%w: %w", errCurves, err)
	}
	if f.Schema != curvesSchema {
		return curvesFile{}, fmt.Errorf("%w: schema %d, this program reads %d", errCurves, f.Schema, curvesSchema)
	}
	return f, nil
}

// changeCurve stores a curve in the file, and keeps what other processes stored. The write is atomic. Of two concurrent writes one
// is lost, which costs a few batches of other sizes.
func changeCurve(file string, c curve) error {
	out, err := readCurves(file)
	if err != nil && !errors.Is(err, errCurves) {
		return err
	}
	out.Schema = curvesSchema
	out.Curves = append(slices.DeleteFunc(out.Curves, func(k curve) bool { return k.Workload == c.Workload }), c)
	data, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return regular.Replace(file, append(data, '\n'), 0o600)
}
