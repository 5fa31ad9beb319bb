package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// opening has the functions that open, create, list, rename or remove files by a path, through any link on it.
var opening = map[string]string{
	"os": "Chmod Chown Chtimes CopyFS Create CreateTemp DirFS Lchown Link Mkdir MkdirAll MkdirTemp Open OpenFile OpenRoot ReadDir ReadFile " +
		"Remove RemoveAll Rename Symlink Truncate WriteFile",
	"filepath": "EvalSymlinks Glob Walk WalkDir",
	"syscall":  "Chmod Chown Creat Link Mkdir Mkfifo Mknod Open Rename Rmdir Symlink Truncate Unlink",
	"unix":     "Chmod Chown Creat Link Mkdir Mkfifo Mknod Open Rename Rmdir Symlink Truncate Unlink",
	"ioutil":   "ReadAll ReadDir ReadFile TempDir TempFile WriteFile",
}

// The reasons of byPath.
const (
	ownFolder = "a folder in the user's cache or a new temporary folder, to which nobody else may write"
	argument  = "a path that a person gives"
	theRoot   = "the directory itself, which may be a link"
)

// byPath has the functions that may call them, with the reason. Below a folder that others may write, such as an output, all others open
// files by internal/regular and os.Root, which follow no link.
var byPath = map[string]string{
	"cmd/ddiff/bench/bench.go bench":                  ownFolder,
	"cmd/ddiff/bench/campaign.go writePhotographs":    ownFolder,
	"cmd/ddiff/cluster/gc.go removeFolder":            ownFolder,
	"cmd/ddiff/lookup/prior_check.go photographs":     argument,
	"cmd/ddiff/man.go newManCommand":                  argument,
	"cmd/ddiff/results/export.go newTree":             argument + ", and a new folder beside it",
	"cmd/ddiff/results/export.go finish":              argument + ", and a new folder beside it",
	"cmd/ddiff/results/report.go hasResults":          theRoot + "; it only reads",
	"cmd/ddiff/results/report.go writeDevice":         argument,
	"cmd/ddiff/results/target.go localImages":         argument + ", among them links to images; it only reads",
	"cmd/ddiff/run/restore_campaign.go discardOutput": "a folder that this process has made",
	"cmd/ddiff/run/restore_output.go beginningOf":     argument + "; it only reads",
	"cmd/ddiff/run/restore_blur.go drawDisk":          ownFolder,
	"cmd/ddiff/run/restore_files.go checkWritable":    argument + ", and a new file in it",
	"cmd/ddiff/run/restore_files.go findPictures":     argument,
	"cmd/ddiff/run/restore_preview.go cropPreview":    ownFolder,
	"cmd/ddiff/run/restore.go restoreGroup":           ownFolder,
	"internal/cli/embedded/embedded.go emptyDir":      ownFolder,
	"internal/cli/resultname/names.go Write":          theRoot,
	"internal/cli/resultname/names.go readReported":   theRoot,
	"internal/cli/pace.go Store":                      ownFolder,
	"internal/cli/scratch.go MakeScratch":             ownFolder,
	"internal/cli/scratch.go removeDamaged":           ownFolder,
	"internal/cli/scratch.go lockScratch":             ownFolder,
	"internal/cli/scratch.go ownFolders":              "the user's cache, or the temporary files, of which it lists the folders of this user",
	"internal/regular/regular.go Open":                argument + ", or a file that the program has made",
	"internal/regular/replace.go Create":              argument,
	"internal/regular/replace.go publish":             argument + ", and a new file beside it",
	"internal/regular/replace.go link":                argument + ", and a new file beside it",
	"internal/regular/replace.go MakeFolder":          argument,
	"internal/regular/replace.go MoveFolder":          "a folder that this process has made, and an argument",
	"internal/regular/replace.go syncPath":            argument,
	"storage/cache.go NewCache":                       theRoot,
	"storage/cache.go in":                             theRoot,
	"storage/dir.go NewDir":                           theRoot,
	"storage/dir.go root":                             theRoot,
	"storage/lock.go AcquireLock":                     theRoot,
	"storage/lock.go stateFolder":                     theRoot,
	"internal/cli/server/tokens.go Login":             "a folder in the user's configuration",
	"internal/cli/localpage/localpage.go Folder":      ownFolder,
	"internal/cli/localpage/localpage.go Show":        ownFolder,
	"internal/cli/localpage/localpage.go Store":       ownFolder,
	"internal/cli/localpage/localpage.go redirect":    ownFolder,
}

// TestAttackOneWayToOpen: a path below a folder that others may write is opened in one way, which follows no link.
func TestAttackOneWayToOpen(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, name := range tracked(t, "storage/*.go", "internal/regular/*.go", "internal/cli/*.go", "gpuworker/*.go", "cmd/*.go") {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "internal/s3test/") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join(root, filepath.FromSlash(name)), nil, parser.SkipObjectResolution)
		must(t, err)
		imported := map[string]string{} // local name to package
		for _, i := range file.Imports {
			pkg := path.Base(strings.Trim(i.Path.Value, `"`))
			local := pkg
			if i.Name != nil {
				local = i.Name.Name
			}
			imported[local] = pkg
		}
		for _, decl := range file.Decls {
			where := name + " "
			if f, ok := decl.(*ast.FuncDecl); ok {
				where += f.Name.Name
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				x, ok := s.X.(*ast.Ident)
				if !ok || !slices.Contains(strings.Fields(opening[imported[x.Name]]), s.Sel.Name) {
					return true
				}
				used[where] = true
				if byPath[where] == "" {
					t.Errorf("%s: %s.%s in %q follows links; use os.Root or internal/regular, or add the function to byPath with the reason",
						fset.Position(s.Pos()), x.Name, s.Sel.Name, where)
				}
				return true
			})
		}
	}
	for where := range byPath {
		if !used[where] {
			t.Errorf("byPath has %q, which opens nothing by a path; remove it", where)
		}
	}
}
