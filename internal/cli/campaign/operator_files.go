package campaign

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ddiff/internal/cli"
	"ddiff/internal/record"
	"ddiff/internal/redact"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/prior"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// OpenOperator reads an operator file. Its errors end a command with cli.ExitPrior.
func OpenOperator(path string) (*operator.File, error) {
	data, err := operator.Read(path)
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, modelfile.ErrExternal) {
		return nil, fmt.Errorf("%w %s: no such file; name an ONNX file", cli.ErrOperator, redact.Address(path))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", cli.ErrOperator, err)
	}
	return operator.Load(path, data)
}

// withOperators returns the catalogue of a campaign, with its operator files. Absent: those that do not exist on this machine are
// left out.
func withOperators(c manifest.Catalogue, s *manifest.Spec, absent bool) (manifest.Catalogue, error) {
	files := map[string]*operator.File{}
	for _, path := range s.Operators() {
		if _, err := os.Stat(path); absent && (manifest.IsAddress(path) || errors.Is(err, fs.ErrNotExist)) {
			continue
		}
		f, err := OpenOperator(path)
		if err != nil {
			return c, err
		}
		files[path] = f
	}
	return c.WithFiles(s, files), nil
}

// operatorTasks returns the tasks of --operator.
func operatorTasks(paths []string) ([]item.Task, error) {
	var out []item.Task
	for _, path := range paths {
		if path == "" {
			return nil, errors.New("--operator: is empty; give an ONNX file")
		}
		full := path
		if !manifest.IsAddress(path) {
			var err error
			if full, err = filepath.Abs(path); err != nil {
				return nil, fmt.Errorf("--operator %s: %w", path, err)
			}
		}
		out = append(out, item.Task{Name: manifest.OperatorName(path), Operator: full})
	}
	return out, nil
}

// VerifyOperators runs each operator file of a catalogue once, checks that a solver with the prior can contain it, and returns
// the files by their digests.
func VerifyOperators(ctx context.Context, rt *onnxruntime.Runtime, c manifest.Catalogue, p *prior.Prior) (map[string]*operator.File, error) {
	out := map[string]*operator.File{}
	for _, f := range c.Files {
		if err := f.Fits(p.Opset(), p.Card.Channels); err != nil {
			return nil, err
		}
		if err := f.Verify(ctx, rt); err != nil {
			return nil, err
		}
		out[f.SHA256] = f
	}
	return out, nil
}

// DefaultsNote names the tasks with operator files whose settings were not chosen for them, or returns "".
func DefaultsNote(s *manifest.Spec) string {
	var names []string
	for _, t := range s.Tasks {
		if t.Operator != "" && len(s.Effective(t).Solver) == 0 && !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("note: no settings were chosen for %s; ddiff tune may find better ones", strings.Join(names, ", "))
}

// SubmittedOperators describes the operator files of a campaign that exist on this machine. The others exist on that of the
// coordinator.
func SubmittedOperators(c manifest.Catalogue, s *manifest.Spec) (manifest.Catalogue, []record.OperatorFile, error) {
	c, err := withOperators(c, s, true)
	var out []record.OperatorFile
	for _, path := range s.Operators() {
		if f := c.Files[path]; f != nil {
			out = append(out, record.OperatorFile{Path: path, SHA256: f.SHA256})
		}
	}
	return c, out, err
}
