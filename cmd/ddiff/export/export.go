package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ddiff/coordinator/report/aggregate"
	"ddiff/coordinator/report/result"
	"ddiff/coordinator/report/selection"
	"ddiff/coordinator/report/sweep"
	"ddiff/coordinator/report/table"
	"ddiff/coordinator/shard"
	"ddiff/internal/cli"
	"ddiff/internal/cli/resultname"
	"ddiff/manifest"
)

// The layouts of ddiff export.
const (
	layoutFolder      = "folder"
	layoutHuggingFace = "huggingface"
	layoutMLflow      = "mlflow"
	layoutWandb       = "wandb"
)

func layouts() []string { return []string{layoutFolder, layoutHuggingFace, layoutMLflow, layoutWandb} }

// exportOptions are the flags of export.
type exportOptions struct {
	catalogue shard.Catalogue
	where     []string
	versions  []string
	layout    string
	out       string
	rule      string
}

func newExportCommand(c shard.Catalogue) *cobra.Command {
	o := exportOptions{catalogue: c}
	cmd := &cobra.Command{
		Use:   "export OUTPUT...",
		Short: "Copy results into the layout of other programs",
		Long: "Copy the results of outputs, directories or buckets, into the layout of other programs.\n" +
			"folder: CELL/restored/NAME.png, CELL/truth/NAME.png and CELL/measurement/NAME.png, one CELL per problem and way to\n" +
			"solve it, for tools that compare two folders of images, such as those for FID.\n" +
			"huggingface: Parquet files with the pictures as columns, for: datasets.load_dataset(\"DIRECTORY\")\n" +
			"mlflow: an MLflow file store, one run per cell with its parameters and mean scores.\n" +
			"wandb: offline directories of Weights & Biases, one run per cell, for: wandb sync DIRECTORY/offline-run-*\n" +
			"For tables see: ddiff report --format csv, parquet.",
		Example: "  ddiff export out/demo --out images\n" +
			"  ddiff export out/sweep --layout mlflow --out mlruns",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.versions, "metric-version", nil, "`id` of the version of a metric, such as psnr@1:png; repeatable (default the only one)")
	f.StringArrayVar(&o.where, "where", nil, "only results with `NAME=VALUE[,VALUE]`: a column of results.csv, a parameter or a setting; repeatable")
	f.StringVar(&o.layout, "layout", layoutFolder, "`layout`: "+strings.Join(layouts(), ", "))
	f.StringVarP(&o.out, "out", "o", "export", "`directory` that is new or empty")
	f.StringVar(&o.rule, "select", "", "`rule` that selects the run of a mean: "+cli.Words(manifest.Selections())+" (default first)")
	return cmd
}

func (o exportOptions) run(ctx context.Context, args []string, stdout io.Writer) error {
	rule, err := selection.Parse(o.rule)
	switch {
	case err != nil:
		return cli.Usage(fmt.Errorf("export: --%w", err))
	case !slices.Contains(layouts(), o.layout):
		return cli.Usage(fmt.Errorf("export: --layout %q is none of %s", o.layout, strings.Join(layouts(), ", ")))
	case manifest.IsAddress(o.out):
		return cli.Usage(fmt.Errorf("export: --out %s is an address; give a directory of this machine", o.out))
	}
	versions, err := result.ParseVersions(o.versions)
	if err != nil {
		return cli.Usage(fmt.Errorf("export: --metric-version: %w", err))
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
	results := versions.Select(cli.AtLeastOne(filter.Select(result.Results(ctx, outputs)), args))

	to, err := newTree(o.out)
	if err != nil {
		return err
	}
	line, err := o.export(ctx, to, outputs, results, rule, strings.Join(args, ", "))
	if err := to.finish(err); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s dir=%s\n", line, o.out)
	return err
}

// export writes the layout. It returns the counts of the last line.
func (o exportOptions) export(
	ctx context.Context, to *tree, outputs []result.Output, results iter.Seq2[manifest.Result, error], rule selection.Rule, name string,
) (line string, err error) {
	if o.layout == layoutMLflow || o.layout == layoutWandb {
		summary, err := aggregate.Summarize(results, o.catalogue.Operators, rule, nil)
		if err != nil {
			return "", err
		}
		runs, err := newExportedRuns(summary)
		if err != nil {
			return "", err
		}
		line = fmt.Sprintf("runs=%d", len(runs))
		if o.layout == layoutWandb {
			return line, exportWandb(to, runs)
		}
		return line, exportMLflow(to, name, runs)
	}
	from := result.Folder{Outputs: outputs}
	if o.layout == layoutHuggingFace {
		n, err := table.WritePictures(ctx, from, results, to.put)
		return fmt.Sprintf("images=%d", n), err
	}
	e := &folderExport{from: from, to: to}
	for r, err := range results {
		if err != nil {
			return "", err
		}
		if err := e.add(r); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("images=%d cells=%d", len(e.items), len(e.cells)), e.copy(ctx)
}

// tree is a new directory that is complete or absent.
type tree struct{ dir, temp string }

func newTree(dir string) (*tree, error) {
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0:
		return nil, cli.Usage(fmt.Errorf("export: %s is not empty: it has %s; give a new directory", dir, entries[0].Name()))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, cli.Usage(fmt.Errorf("export: %w", err))
	}
	dir = filepath.Clean(dir)
	temp, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-")
	if err == nil {
		err = os.Chmod(temp, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", cli.ErrReportFile, dir, err)
	}
	return &tree{dir, temp}, nil
}

// put writes a file.
func (t *tree) put(key string, data []byte) error {
	path := filepath.Join(t.temp, filepath.FromSlash(key))
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, data, 0o644)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", cli.ErrReportFile, err)
	}
	return nil
}

// finish gives the directory its name, or removes it after an error.
func (t *tree) finish(failed error) error {
	if failed != nil {
		return errors.Join(failed, os.RemoveAll(t.temp))
	}
	if err := os.Remove(t.dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // an empty directory
		return errors.Join(fmt.Errorf("%w %s: %w", cli.ErrReportFile, t.dir, err), os.RemoveAll(t.temp))
	}
	if err := os.Rename(t.temp, t.dir); err != nil {
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

func (e *folderExport) add(r manifest.Result) error {
	if r.Outcome != manifest.OutcomeDone {
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
	for _, file := range []string{manifest.FileRestored, manifest.FileTruth, manifest.FileMeasurement} {
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
	folders := resultname.Cells(e.cells)
	names := make([]string, len(e.items))
	count := map[string]int{}
	for i, it := range e.items {
		names[i] = resultname.Safe(it.name)
		if seeds {
			names[i] += fmt.Sprintf(".seed=%d", it.seed)
		}
		if runs {
			names[i] += fmt.Sprintf(".run%d", it.run)
		}
		count[folders[it.cell]+"/"+resultname.Fold(names[i])]++
	}
	for i, it := range e.items {
		if count[folders[it.cell]+"/"+resultname.Fold(names[i])] > 1 {
			names[i] += "." + it.id[:12]
		}
		for _, file := range it.files {
			data, err := e.from.Artifact(ctx, it.id, file.name, file.digest)
			if err != nil {
				return fmt.Errorf("read %s of item %s: %w", file.name, it.name, err)
			}
			kind := strings.TrimSuffix(file.name, ".png")
			if err := e.to.put(folders[it.cell]+"/"+kind+"/"+names[i]+".png", data); err != nil {
				return err
			}
		}
	}
	return nil
}
