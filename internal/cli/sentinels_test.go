package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// withoutCode lists the exported sentinels without a class of package failure, with the reason.
var withoutCode = map[string]string{
	"result.ErrIncomplete":       "a warning: the report is written",
	"board.ErrUnchanged":         "the record is not written",
	"archive.ErrBusy":            "the coordinator tries again",
	"api.ErrUnexpected":          "the exit code of an unexpected error",
	"board.ErrDamaged":           "the archiver answers with it, or skips the record",
	"index.ErrDeleting":          "the coordinator rejects the campaign",
	"item.ErrResultDigest":       "ddiff verify prints it as a problem",
	"queue.ErrDuplicate":         "a repeated publication is not an error",
	"queue.ErrSettled":           "the worker drops the item",
	"queue.ErrTooLarge":          "ends an item, not a command",
	"queue.ErrStepDown":          "the coordinator waits to lead again",
	"queue.ErrRecordExists":      "the coordinator reads the record",
	"queue.ErrConflict":          "the coordinator repeats the change",
	"passport.ErrNone":           "ddiff verify prints it as a problem",
	"passport.ErrUnreadable":     "ddiff verify prints it as a problem",
	"job.ErrMemory":              "ends an item, not a command",
	"guard.ErrStuck":             "accompanies ErrHung",
	"job.ErrInput":               "ends an item, not a command",
	"job.ErrUnsupported":         "the worker refuses the campaign",
	"storage.ErrNotFound":        "each command knows what is missing",
	"storage.ErrExists":          "a create-only write that another process made first",
	"metric.ErrShape":            "ends an item, not a command",
	"metric.ErrTooSmall":         "the score is undefined",
	"metric.ErrUndefined":        "the score is undefined",
	"photograph.ErrFewPatches":   "ends an item, not a command",
	"photograph.ErrNotFinite":    "ends an item, not a command",
	"onnxruntime.ErrMemory":      "accompanies ErrRuntime",
	"onnxruntime.ErrDevice":      "accompanies ErrRuntime",
	"onnxruntime.ErrDeviceLost":  "accompanies ErrRuntime",
	"onnxruntime.ErrAlreadyOpen": "a mistake of the program",
	"job.ErrYield":               "a step's answer to its batch",
	"solver.ErrDiverged":         "ends an item, not a command",
	"tiff.ErrFormat":             "ends an item, not a command",
	"picture.ErrImplausible":     "ends a picture, not a command",
	"photograph.ErrNoWidth":      "ends a picture, not a command",
	"raster.ErrBudget":           "ends an item, not a command",
	"onnx.ErrDivide":             "comes with onnxruntime.ErrFallback",
	"haar.ErrConfig":             "a mistake of the program, or of make latent-bundle",
	"lifecycle.ErrStopped":       "a mistake of the program",
}

// TestSentinelsHaveCodes: each exported sentinel error of the program has a class, which is its exit code, or a reason to have none.
func TestSentinelsHaveCodes(t *testing.T) {
	seen := map[string]bool{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "testdata" || name == "testbed" || name == "bin" || len(name) > 1 && name[0] == '.' && path != root) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		for name, classed := range sentinels(t, path) {
			seen[name] = true
			if reason := withoutCode[name]; classed == (reason != "") {
				t.Errorf("%s: %s: has a class: %v; reason to have none: %q", path, name, classed, reason)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range withoutCode {
		if !seen[name] {
			t.Errorf("%s does not exist", name)
		}
	}
	if len(seen) < 100 {
		t.Errorf("%d sentinels found, want more than 100", len(seen))
	}
}

// sentinels returns the exported variables of a file that errors.New or failure.New makes, with the name of their package, and which of
// the two it is.
func sentinels(t *testing.T, path string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	classed := map[string]bool{}
	for _, decl := range file.Decls {
		g, ok := decl.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			if len(v.Values) != 1 || !v.Names[0].IsExported() {
				continue
			}
			if call, ok := v.Values[0].(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "New" {
					from, ok := f.X.(*ast.Ident)
					classed[file.Name.Name+"."+v.Names[0].Name] = ok && from.Name == "failure"
				}
			}
		}
	}
	return classed
}
