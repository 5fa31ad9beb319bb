package results

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ddiff/internal/cli"
	"ddiff/internal/cli/resultname"
	"ddiff/internal/regular"
	"ddiff/internal/report/result"
	"ddiff/internal/report/sweep"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// exportOptions are the flags of export.
type exportOptions struct {
	where []string
	out   string
}

func newExportCommand() *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:   "export OUTPUT...",
		Short: "Copy the pictures of results into folders, for other programs",
		Long: "Copy the pictures of outputs, directories or buckets, into folders with readable names:\n" +
			"CELL/restored/NAME.png, CELL/truth/NAME.png and CELL/measurement/NAME.png, one CELL per problem and way to solve it, for\n" +
			"tools that compare two folders of images, such as those for FID.\n" +
			"For tables see: ddiff report --format csv, parquet. docs/scripting.md has recipes for other programs.",
		Example: "  ddiff export out/demo --out images",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.where, "where", nil, "only results with `NAME=VALUE[,VALUE]`: a column of results.csv, a parameter or a setting; repeatable")
	f.StringVarP(&o.out, "out", "o", "export", "`directory` that is new or empty")
	return cmd
}

func (o exportOptions) run(ctx context.Context, args []string, stdout io.Writer) error {
	if manifest.IsAddress(o.out) {
		return cli.Usage(fmt.Errorf("export: --out %s is an address; give a directory of this machine", o.out))
	}
	filter, err := result.ParseFilter(o.where)
	if err != nil {
		return cli.Usage(fmt.Errorf("export: --where: %w", err))
	}
	outputs, closeAll, err := cli.OpenOutputs(ctx, args)
	if err != nil {
		return err
	}
	defer closeAll()
	to, err := newTree(o.out)
	if err != nil {
		return err
	}
	e := &folderExport{from: result.Folder{Outputs: outputs}, to: to}
	if err := to.finish(e.write(ctx, cli.AtLeastOne(filter.Select(result.Results(ctx, outputs)), args))); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "images=%d cells=%d dir=%s\n", len(e.items), len(e.cells), o.out)
	return err
}

// tree is a new directory that is complete or absent.
type tree struct {
	dir, temp string
	root      *os.Root // of temp
}

func newTree(dir string) (*tree, error) {
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0:
		return nil, cli.Usage(fmt.Errorf("export: %s is not empty: it has %s; give a new directory", dir, entries[0].Name()))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, cli.Usage(fmt.Errorf("export: %w", err))
	}
	dir = filepath.Clean(dir)
	temp := filepath.Join(filepath.Dir(dir), ".ddiff-"+rand.Text()+".tmp")
	err = os.Mkdir(temp, 0o755)
	var root *os.Root
	if err == nil {
		root, err = os.OpenRoot(temp)
	}
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", cli.ErrReportFile, dir, err)
	}
	return &tree{dir, temp, root}, nil
}

// put writes a file.
func (t *tree) put(key string, data []byte) error {
	err := t.root.MkdirAll(path.Dir(key), 0o755)
	if err == nil {
		err = t.root.WriteFile(key, data, 0o644)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", cli.ErrReportFile, err)
	}
	return nil
}

// finish gives the directory its name, or removes it after an error.
func (t *tree) finish(failed error) error {
	t.root.Close() // its files are closed
	if failed != nil {
		return errors.Join(failed, os.RemoveAll(t.temp))
	}
	if err := os.Remove(t.dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // an empty directory
		return errors.Join(fmt.Errorf("%w %s: %w", cli.ErrReportFile, t.dir, err), os.RemoveAll(t.temp))
	}
	if err := regular.MoveFolder(t.temp, t.dir); err != nil {
		return errors.Join(fmt.Errorf("%w %s: %w", cli.ErrReportFile, t.dir, err), os.RemoveAll(t.temp))
	}
	return nil
}

// folderExport copies pictures into one folder per cell.
type folderExport struct {
	from  result.Folder
	to    *tree
	cells []sweep.Cell
	index map[sweep.Cell]int
	items []exportedItem
}

// exportedItem is a finished item.
type exportedItem struct {
	id, name  string
	cell, run int
	seed      uint64
	files     []exportedFile
}

// exportedFile is a picture with its SHA-256.
type exportedFile struct{ name, digest string }

// write copies the pictures of the results.
func (e *folderExport) write(ctx context.Context, results iter.Seq2[item.Result, error]) error {
	for r, err := range results {
		if err == nil {
			err = e.add(r)
		}
		if err != nil {
			return err
		}
	}
	return e.copy(ctx)
}

func (e *folderExport) add(r item.Result) error {
	if r.Outcome != item.OutcomeDone {
		return nil
	}
	cell, err := sweep.CellOf(&r.Item)
	if err != nil {
		return err
	}
	at, known := e.index[cell]
	if !known {
		at = len(e.cells)
		if e.index == nil {
			e.index = map[sweep.Cell]int{}
		}
		e.index[cell], e.cells = at, append(e.cells, cell)
	}
	it := exportedItem{id: r.Item.ID, name: r.Item.Name, cell: at, run: r.Item.Run, seed: r.Item.Seed}
	for _, file := range []string{item.FileRestored, item.FileTruth, item.FileMeasurement} {
		if digest, ok := r.Artifacts[file]; ok {
			it.files = append(it.files, exportedFile{file, digest})
		}
	}
	e.items = append(e.items, it)
	return nil
}

// copy copies the pictures, in an order that depends on the results only.
func (e *folderExport) copy(ctx context.Context) error {
	slices.SortFunc(e.items, func(a, b exportedItem) int { return strings.Compare(a.id, b.id) })
	runs, seeds := false, false
	for _, it := range e.items {
		runs, seeds = runs || it.run != e.items[0].run, seeds || it.seed != e.items[0].seed
	}
	folders := resultname.Tails(e.cells)
	taken := map[string]bool{}
	for _, it := range e.items {
		name := resultname.Safe(it.name)
		if seeds {
			name += fmt.Sprintf(".seed=%d", it.seed)
		}
		if runs {
			name += fmt.Sprintf(".run%d", it.run)
		}
		if taken[folders[it.cell]+"/"+cli.Fold(name)] {
			name += "." + it.id[:12]
		}
		taken[folders[it.cell]+"/"+cli.Fold(name)] = true
		for _, file := range it.files {
			data, err := e.from.Artifact(ctx, it.id, file.name, file.digest)
			if err != nil {
				return fmt.Errorf("read %s of item %s: %w", file.name, it.name, err)
			}
			kind := strings.TrimSuffix(file.name, ".png")
			if err := e.to.put(folders[it.cell]+"/"+kind+"/"+name+".png", data); err != nil {
				return err
			}
		}
	}
	return nil
}
