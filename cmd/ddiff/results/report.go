package results

import (
	"cmp"
	"context"
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
	"ddiff/internal/redact"
	"ddiff/internal/regular"
	"ddiff/internal/report"
	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/published"
	"ddiff/internal/report/result"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/table"
	"ddiff/internal/restore/prior"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
)

// The formats of ddiff report.
const (
	formatHTML     = "html"
	formatText     = "text"
	formatCSV      = "csv"
	formatParquet  = "parquet"
	formatMarkdown = "md"
	formatLaTeX    = "latex"
	formatFigures  = "figures"
)

func reportFormats() []string {
	return []string{formatHTML, formatText, formatCSV, formatParquet, formatMarkdown, formatLaTeX, formatFigures}
}

// reportOptions are the flags of report.
type reportOptions struct {
	catalogue manifest.Catalogue
	where     []string
	versions  []string
	format    string
	rule      selection.Rule
	layout    table.Layout
	out       string
	published string
}

func newReportCommand(c manifest.Catalogue) *cobra.Command {
	o := reportOptions{catalogue: c}
	cmd := &cobra.Command{
		Use:   "report OUTPUT...",
		Short: "Make a report of the results in outputs",
		Long: "Make one report of all results of any number of outputs, directories or buckets, of all their campaigns.\n" +
			"Nothing is solved again. Failed and dead items are those of the campaigns' last reports.\n" +
			"A row of the table is one problem and one way to solve it; different ones are never averaged.\n" +
			"The page (html) is a directory of its own with the pictures that it shows. The statistical figures alone (figures)\n" +
			"are SVG files, each with its data as CSV, and captions.md with their captions; Python draws them for a paper (ddiff.chart).",
		Example: "  ddiff report out/demo\n" +
			"  ddiff report out/methods --by-method --columns PSNR --format latex\n" +
			"  ddiff report out/demo out/sweep --where task=hdr,motion_deblur \\\n      --where sigma=0.05 --format md\n" +
			"  ddiff report out/paper/ablation \\\n      --published examples/paper/ablation.published.csv\n" +
			"  ddiff report out/sweep --format figures --out paper/figures\n" +
			"  ddiff report \"s3://results/demo?endpoint=https://host\" \\\n      --format parquet --out demo.parquet",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.where, "where", nil, "only results with `NAME=VALUE[,VALUE]`: a column of results.csv, a parameter or a setting; repeatable")
	f.StringSliceVar(&o.versions, "metric-version", nil, "`id` of the version of a metric, such as psnr@1:png; repeatable (default the only one)")
	f.StringVar(&o.format, "format", formatText, "`format`: "+strings.Join(reportFormats(), ", "))
	f.StringSliceVar(&o.layout.Columns, "columns", nil, "numbers to show in a text, md or latex table, by their `headings` (default all, with --by-method PSNR,SSIM)")
	f.BoolVar(&o.layout.Methods, "by-method", false, "a text, md or latex table with a line for each method, and columns for each task")
	f.StringVar((*string)(&o.rule), "select", "", "`rule` that selects the run to report: "+cli.Words(manifest.Selections())+" (default first)")
	f.StringVarP(&o.out, "out", "o", "", "`file`, or the directory of the page or the figures (default standard output; report for html, figures for figures)")
	f.StringVar(&o.published, "published", "", "CSV `file` with a publication's figures: also print ours, theirs and the difference")
	return cmd
}

func (o reportOptions) run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if !slices.Contains(reportFormats(), o.format) {
		return cli.Usage(fmt.Errorf("report: --format %q is none of %s", o.format, strings.Join(reportFormats(), ", ")))
	}
	if o.format == formatParquet && o.out == "" {
		return cli.Usage(errors.New("report: --format parquet is binary; give --out FILE"))
	}
	if tables := []string{formatText, formatMarkdown, formatLaTeX}; (o.layout.Methods || len(o.layout.Columns) > 0) && !slices.Contains(tables, o.format) {
		return cli.Usage(fmt.Errorf("report: --columns and --by-method are for tables; give --format %s", strings.Join(tables, ", ")))
	}
	rule, err := selection.Parse(o.rule)
	if err != nil {
		return cli.Usage(fmt.Errorf("report: --%w", err))
	}
	if o.rule != "" && (o.format == formatCSV || o.format == formatParquet) {
		return cli.Usage(fmt.Errorf("report: --format %s has a row for each run; leave --select out", o.format))
	}
	filter, err := result.ParseFilter(o.where)
	if err != nil {
		return cli.Usage(fmt.Errorf("report: --where: %w", err))
	}
	theirs, err := o.readPublished()
	if err != nil {
		return cli.Usage(fmt.Errorf("report: --published: %w", err))
	}
	versions, err := result.ParseVersions(o.versions)
	if err != nil {
		return cli.Usage(fmt.Errorf("report: --metric-version: %w", err))
	}
	outputs, closeAll, err := cli.OpenOutputs(ctx, args)
	if err != nil {
		return err
	}
	defer closeAll()
	tunings, err := aggregate.ReadTunings(ctx, outputs, o.catalogue.Methods)
	if err != nil {
		return err
	}
	skips, err := result.LeftOut(ctx, outputs, "")
	if err != nil {
		return err
	}
	unfinished, err := aggregate.Unfinished(ctx, outputs)
	if err != nil {
		return err
	}
	if unfinished > 0 && len(o.where) > 0 { // the other reports say it themselves
		fmt.Fprintf(stderr, "ddiff: %d planned items of these outputs have no outcome yet; --where may select some of them\n", unfinished)
		unfinished = 0
	}
	results := versions.Select(cli.AtLeastOne(filter.Select(result.Results(ctx, outputs)), args))

	// A selection without results ends the command before it creates a folder.
	results, stop, err := begin(results)
	defer stop()
	if err != nil {
		return err
	}
	switch o.format {
	case formatHTML:
		return o.page(ctx, outputs, results, report.Campaign{
			Select: rule, Tasks: o.catalogue.Operators, Published: theirs, Tunings: tunings, Unfinished: unfinished, Skipped: skips,
		}, stdout, stderr)
	case formatFigures:
		return o.figures(ctx, outputs, results, rule, stdout, stderr)
	}
	return o.text(stdout, func(w io.Writer) error {
		switch o.format {
		case formatCSV:
			return table.WriteCSV(w, results, o.catalogue.Operators)
		case formatParquet:
			return table.WriteParquet(w, results, o.catalogue.Operators)
		}
		summary, err := aggregate.Summarize(results, o.catalogue.Operators, rule, tunings)
		if err != nil {
			return err
		}
		format := map[string]table.Format{
			formatText: table.FormatText, formatMarkdown: table.FormatMarkdown, formatLaTeX: table.FormatLaTeX,
		}[o.format]
		summary.Planned += unfinished
		summary = cli.Clean(summary)
		switch err := o.layout.Write(w, summary, format); {
		case errors.Is(err, table.ErrColumn):
			return cli.Usage(fmt.Errorf("report: --columns: %w", err))
		case err != nil || theirs == nil:
			return err
		}
		fmt.Fprintln(w)
		return published.Write(w, summary, theirs, format)
	})
}

// readPublished reads the file of --published, if there is one.
func (o reportOptions) readPublished() (*published.Figures, error) {
	if o.published == "" {
		return nil, nil
	}
	if slices.Contains([]string{formatParquet, formatCSV, formatFigures}, o.format) {
		return nil, fmt.Errorf("--format %s has the results alone; use text for ours, theirs and the difference", o.format)
	}
	f, _, err := regular.Open(o.published, regular.MaxConfigBytes)
	if err != nil {
		return nil, err
	}
	defer f.Close() // opened for reading
	p, err := published.Parse(filepath.Base(o.published), f)
	if err != nil {
		return nil, err
	}
	p.Priors = prior.Own()
	return p, nil
}

// text writes to standard output, or to a file that is complete or absent.
func (o reportOptions) text(stdout io.Writer, write func(io.Writer) error) (err error) {
	if o.out == "" {
		return write(stdout)
	}
	switch info, err := os.Stat(o.out); {
	case err == nil && info.IsDir():
		return cli.Usage(fmt.Errorf("report: --out %s is a directory; give a file", o.out))
	case err == nil && !info.Mode().IsRegular(): // a device or a pipe, which nothing replaces
		return writeDevice(o.out, write)
	}
	var failed error
	err = regular.Create(o.out, 0o644, func(w io.Writer) error {
		failed = write(reportFile{w})
		return failed
	})
	if err != nil && failed == nil {
		return fmt.Errorf("%w %s: %w", cli.ErrReportFile, o.out, err)
	}
	return err
}

// writeDevice writes to a device or a pipe.
func writeDevice(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("%w: %w", cli.ErrReportFile, err)
	}
	return errors.Join(write(reportFile{f}), f.Close())
}

// reportFile marks the errors of writing to it.
type reportFile struct{ io.Writer }

func (f reportFile) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err != nil {
		err = fmt.Errorf("%w: %w", cli.ErrReportFile, err)
	}
	return n, err
}

// page writes the page and its pictures to a directory.
func (o reportOptions) page(
	ctx context.Context, outputs []result.Output, results iter.Seq2[item.Result, error], campaign report.Campaign, stdout, stderr io.Writer,
) (err error) {
	o.out = cmp.Or(o.out, "report")
	if err := cli.CheckTarget(o.out); err != nil {
		return err
	}
	if hasResults(o.out) && (len(outputs) > 1 || !isSameFolder(outputs[0].Address, o.out)) {
		return cli.Usage(fmt.Errorf("report: --out %s has results and a report of its own; give another directory", o.out))
	}
	store, closeStore, err := o.folder(ctx, outputs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	for _, output := range outputs {
		campaign.Outputs = append(campaign.Outputs, output.Address)
	}
	campaign.Name = strings.Join(campaign.Outputs, ", ")
	summary, err := report.Write(ctx, store, campaign, results)
	if err := noteIncomplete(err, stderr); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "items=%d done=%d failed=%d dead=%d report=%s\n",
		summary.Items, summary.Done, summary.Failed, summary.Dead, storage.Locate(o.out, report.KeyPage))
	return err
}

// hasResults reports whether a directory has results.
func hasResults(dir string) bool {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false // it is new
	}
	defer root.Close() // opened for reading
	found, err := fs.Glob(root.FS(), path.Join(item.ItemsFolder, "*", item.FileResult))
	return err == nil && len(found) > 0
}

// isSameFolder reports whether two paths name one directory that exists. An address of a bucket names none.
func isSameFolder(a, b string) bool {
	x, errA := os.Stat(strings.TrimPrefix(a, "file://"))
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(x, y)
}

// figures writes the statistical figures to a directory.
func (o reportOptions) figures(
	ctx context.Context, outputs []result.Output, results iter.Seq2[item.Result, error], rule selection.Rule, stdout, stderr io.Writer,
) (err error) {
	o.out = cmp.Or(o.out, "figures")
	store, closeStore, err := o.folder(ctx, outputs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	n, err := report.WriteFigures(ctx, store, report.Campaign{Select: rule, Tasks: o.catalogue.Operators}, results)
	if err := noteIncomplete(err, stderr); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "figures=%d captions=%s\n", n, storage.Locate(o.out, report.KeyCaptions))
	return err
}

// folder opens the directory of a report.
func (o reportOptions) folder(ctx context.Context, outputs []result.Output) (store result.Folder, closeStore func() error, err error) {
	if manifest.IsAddress(o.out) {
		return store, nil, cli.Usage(fmt.Errorf("report: --out %s is an address; give a directory of this machine", redact.Address(o.out)))
	}
	to, err := storage.Open(ctx, o.out, storage.Options{Lock: true})
	if err != nil {
		return store, nil, fmt.Errorf("open %s: %w", redact.Address(o.out), err)
	}
	return result.Folder{Outputs: outputs, Files: to.Store}, to.Close, nil
}

// noteIncomplete prints the error of an incomplete report, and returns all others.
func noteIncomplete(err error, stderr io.Writer) error {
	if errors.Is(err, result.ErrIncomplete) {
		fmt.Fprintln(stderr, "the report is incomplete:", cli.OneLine(err))
		return nil
	}
	return err
}

// begin reads the first result, and returns its error. The returned sequence has all results and can be read once.
func begin(results iter.Seq2[item.Result, error]) (all iter.Seq2[item.Result, error], stop func(), err error) {
	next, stop := iter.Pull2(results)
	first, err, ok := next()
	return func(yield func(item.Result, error) bool) {
		for r, e := first, err; ok; r, e, ok = next() {
			if !yield(r, e) {
				return
			}
		}
	}, stop, err
}
