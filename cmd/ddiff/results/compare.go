package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ddiff/internal/cli"
	"ddiff/internal/redact"
	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/comparison"
	"ddiff/internal/report/result"
	"ddiff/internal/report/selection"
	"ddiff/internal/restore/metric"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
)

// compareOptions are the flags of compare.
type compareOptions struct {
	catalogue      manifest.Catalogue
	metric         string
	where          []string
	whereA, whereB []string
	rule           selection.Rule
	out            string
	json           bool
}

// largest is the number of measurements with the largest differences that compare shows.
const largest = 10

func newCompareCommand(c manifest.Catalogue) *cobra.Command {
	o := compareOptions{catalogue: c}
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare two outputs, paired by measurement",
		Long: "Compare the PSNR, or another metric, of two outputs, or of two selections of one output, problem by problem:\n" +
			"mean difference A − B, its 95 % interval over images, and Wilcoxon's signed-rank test with Holm's correction over the problems.\n" +
			"Both sides must have restored the same measurements; each must have one way to solve a problem. Notes name\n" +
			"differences in prior, precision and number of runs, and settings that one side alone chose with compared images.",
		Example: "  ddiff compare out/a out/b\n" +
			"  ddiff compare out out --where task=hdr --where-a method=ddiff \\\n      --where-b method=diffpir --out difference",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.metric, "metric", metric.NamePSNR, "`metric` to compare: "+strings.Join(metric.Builtin().Names(), ", ")+", or one of ddiff score; its versioned id chooses a version")
	const usage = "only results of %s with `NAME=VALUE[,VALUE]`; repeatable"
	f.StringArrayVar(&o.where, "where", nil, fmt.Sprintf(usage, "both sides"))
	f.StringArrayVar(&o.whereA, "where-a", nil, fmt.Sprintf(usage, "A"))
	f.StringArrayVar(&o.whereB, "where-b", nil, fmt.Sprintf(usage, "B"))
	f.StringVar((*string)(&o.rule), "select", "", "`rule` that selects the run to compare, not an oracle: "+cli.Words(manifest.Selections())+" (default first)")
	f.StringVarP(&o.out, "out", "o", "", "`directory` for comparison.json and the pictures of the largest differences")
	f.BoolVar(&o.json, "json", false, "print the comparison as a JSON object")
	return cmd
}

func (o compareOptions) run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	rule, err := selection.Parse(o.rule)
	if err != nil {
		return cli.Usage(fmt.Errorf("compare: --%w", err))
	}
	if manifest.IsAddress(o.out) {
		return cli.Usage(fmt.Errorf("compare: --out %s is an address; give a directory of this machine", o.out))
	}
	opened, closeAll, err := cli.OpenOutputs(ctx, args)
	if err != nil {
		return err
	}
	defer closeAll()
	name := metric.NameOf(o.metric)
	var pinned []string
	if name != o.metric {
		pinned = []string{o.metric}
	}
	versions, err := result.ParseVersions(pinned)
	if err != nil {
		return cli.Usage(fmt.Errorf("compare: --metric: %w", err))
	}
	var sides [2]iter.Seq2[item.Result, error]
	var outputs [2]result.Output
	for i, where := range [][]string{o.whereA, o.whereB} {
		filter, err := result.ParseFilter(slices.Concat(o.where, where))
		if err != nil {
			return cli.Usage(fmt.Errorf("compare: --where: %w", err))
		}
		outputs[i] = opened[i]
		sides[i] = versions.Select(cli.AtLeastOne(filter.Select(result.Results(ctx, opened[i:i+1])), args[i:i+1]))
	}
	v, err := comparison.Compare(sides[0], sides[1], o.catalogue.Operators, rule, name)
	if errors.Is(err, comparison.ErrNotComparable) {
		return cli.Usage(fmt.Errorf("compare: %w", err))
	}
	if err != nil {
		return err
	}
	tunings, err := aggregate.ReadTunings(ctx, opened, o.catalogue.Methods)
	if err != nil {
		return err
	}
	v.AddTunings(tunings)
	if o.out != "" {
		if err := o.store(ctx, v, outputs, stderr); err != nil {
			return err
		}
	}
	if o.json {
		return json.NewEncoder(stdout).Encode(v)
	}
	return cli.Clean(v).WriteText(stdout, largest)
}

// store writes the files of the comparison.
func (o compareOptions) store(ctx context.Context, v *comparison.Versus, outputs [2]result.Output, stderr io.Writer) (err error) {
	to, err := storage.Open(ctx, o.out, storage.Options{Lock: true})
	if err != nil {
		return fmt.Errorf("open %s: %w", redact.Address(o.out), err)
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	side := func(i int) result.Folder { return result.Folder{Outputs: outputs[i : i+1], Files: to.Store} }
	err = v.Write(ctx, to.Store, side(0), side(1), o.catalogue.Operators, largest)
	if errors.Is(err, result.ErrIncomplete) {
		fmt.Fprintln(stderr, "the pictures are incomplete:", cli.OneLine(err))
		err = nil
	}
	return err
}
