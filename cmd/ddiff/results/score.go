package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ddiff/internal/cli"
	"ddiff/internal/redact"
	"ddiff/internal/report/result"
	"ddiff/internal/restore/metric"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/score"
	"ddiff/storage"
)

// scoreOptions are the flags of score.
type scoreOptions struct {
	cli.ComputeOptions
	metrics []string
	where   []string
	json    bool
}

func newScoreCommand() *cobra.Command {
	var o scoreOptions
	cmd := &cobra.Command{
		Use:   "score OUTPUT...",
		Short: "Compute metrics of stored results",
		Long: "Compute metrics of the results in outputs, directories or buckets, from the stored pictures. Nothing is solved\n" +
			"again. The scores are stored under scores/ in the output; ddiff report and ddiff compare read them. Only\n" +
			"missing scores are computed; rerun the same command after new results or an interruption.\n" +
			"Stored pictures have 8 bits, so psnr gets the id psnr@1:png and never mixes with the psnr@1 of result.json.\n" +
			"max_difference is the largest difference between the two. lpips:FILE is a network that ddiff_export lpips wrote;\n" +
			"its id has the beginning of the file's digest. Metrics with an @ compare restored.npy, which is not clipped and which campaigns\n" +
			"with unclipped: true have.",
		Example: "  ddiff score out/demo --metric haarpsi,psnr --metric lpips:lpips_vgg.onnx\n" +
			"  ddiff report out/demo --metric-version psnr@1:png",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.metrics, "metric", nil, "`metrics`: "+metricNames()+"; repeatable (default "+strings.Join(score.Names(), ", ")+")")
	f.StringArrayVar(&o.where, "where", nil, "only results with `NAME=VALUE[,VALUE]`: a column of results.csv, a parameter or a setting; repeatable")
	o.AddDevice(f, onnxruntime.ProviderCPU)
	f.BoolVar(&o.json, "json", false, "print one JSON object per metric")
	return cmd
}

func (o scoreOptions) run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	filter, err := result.ParseFilter(o.where)
	if err != nil {
		return cli.Usage(fmt.Errorf("score: --where: %w", err))
	}
	for _, arg := range args {
		if err := cli.CheckOutput(arg); err != nil {
			return fmt.Errorf("score: %w", err)
		}
	}
	metrics, closeAll, err := o.openMetrics(ctx)
	if err != nil {
		return err
	}
	defer closeAll()
	show := cli.StatusLine(stderr)
	var total []score.Count
	var unknown error // no output so far has a property of --where
	for _, arg := range args {
		counts, err := scoreOutput(ctx, arg, score.Config{
			Address: arg, Metrics: metrics, Filter: filter, Parallel: runtime.GOMAXPROCS(0),
			Problem: func(key string, err error) {
				show("")
				fmt.Fprintln(stderr, cli.Printable(fmt.Sprintf("%s: %v; move the item's folder away and run its campaign again", storage.Locate(arg, key), err)))
			},
			Progress: func(items int) { show(fmt.Sprintf("%s: %d items", arg, items)) },
		})
		show("")
		unknown = nil
		if errors.Is(err, result.ErrFilter) {
			unknown, err = cli.Usage(fmt.Errorf("score: --where: %w", err)), nil
		}
		if err != nil {
			return err
		}
		if total == nil {
			total = counts
			continue
		}
		for i := range total {
			total[i].Add(counts[i])
		}
	}
	if unknown != nil {
		return unknown
	}
	return o.finish(total, args, stdout)
}

// openMetrics returns the metrics of the flags.
func (o scoreOptions) openMetrics(ctx context.Context) (metrics []score.Metric, closeAll func(), err error) {
	var networks networkMetrics
	names := o.metrics
	if len(names) == 0 {
		names = score.Names()
	}
	seen := make(map[string]bool)
	for _, name := range names {
		m, ok := score.Named(name, cli.Version())
		kind, file, isFile := strings.Cut(name, ":")
		if isFile && (kind == lpipsMetric || kind == lpipsUnclipped) {
			m, err = networks.open(ctx, o.ComputeOptions, kind, file)
		} else if !ok {
			err = cli.Usage(fmt.Errorf("score: --metric %q is none of %s", name, metricNames()))
		}
		if err != nil {
			networks.close()
			return nil, nil, err
		}
		if !seen[m.Head.Metric] {
			seen[m.Head.Metric] = true
			metrics = append(metrics, m)
		}
	}
	return metrics, networks.close, nil
}

// metricNames lists the values of --metric.
func metricNames() string {
	return strings.Join(slices.Concat(score.Names(), score.UnclippedNames(), []string{lpipsMetric + ":FILE", lpipsUnclipped + ":FILE"}), ", ")
}

// scoreOutput scores the results of one output.
func scoreOutput(ctx context.Context, arg string, cfg score.Config) (counts []score.Count, err error) {
	store, err := storage.Open(ctx, arg, storage.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("open output: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	cfg.Store = store.Store
	return score.Run(ctx, cfg)
}

// finish prints the counts, and returns an error if pictures could not be scored.
func (o scoreOptions) finish(counts []score.Count, args []string, stdout io.Writer) error {
	items, wrong := 0, 0
	for _, c := range counts {
		items, wrong = max(items, c.Items), max(wrong, c.Wrong)
	}
	if items == 0 {
		return cli.Usage(fmt.Errorf("score: %s: no result matches; check the path and --where", strings.Join(args, ", ")))
	}
	for _, c := range counts {
		if o.json {
			if err := json.NewEncoder(stdout).Encode(c); err != nil {
				return err
			}
			continue
		}
		line := fmt.Sprintf("metric=%s items=%d scored=%d present=%d skipped=%d wrong=%d", c.Metric, c.Items, c.Scored, c.Present, c.Skipped, c.Wrong)
		if c.Difference != nil {
			line += fmt.Sprintf(" max_difference=%.3g", *c.Difference)
		}
		if _, err := fmt.Fprintln(stdout, cli.Printable(line)); err != nil {
			return err
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%w: the pictures of %d of %d items cannot be scored", cli.ErrMismatch, wrong, items)
	}
	return nil
}

// The metrics of --metric that need a file: of clipped and of unclipped images.
const (
	lpipsMetric    = "lpips"
	lpipsUnclipped = "lpips@unclipped"
)

// networkMetrics are metrics in ONNX files, and the runtime that evaluates them.
type networkMetrics struct {
	runtime *onnxruntime.Runtime
	opened  []*metric.Network
}

// open opens the file of a metric, and the runtime for the first one. An unusable file is metric.ErrNetwork.
func (n *networkMetrics) open(ctx context.Context, o cli.ComputeOptions, kind, file string) (score.Metric, error) {
	if n.runtime == nil {
		rt, err := o.Open(slog.New(slog.DiscardHandler))
		if err != nil {
			return score.Metric{}, err
		}
		n.runtime = rt
	}
	m, err := metric.OpenNetwork(ctx, n.runtime, file)
	if errors.Is(err, fs.ErrNotExist) {
		return score.Metric{}, cli.Usage(fmt.Errorf("score: --metric %s:%s: no such file; export one with ddiff_export lpips", kind, redact.Address(file)))
	}
	if err != nil {
		return score.Metric{}, fmt.Errorf("score: %w", err)
	}
	n.opened = append(n.opened, m)
	out := score.Metric{
		Head:    result.ScoreHead{Metric: m.ID(), SHA256: m.SHA256, File: filepath.Base(file), Version: cli.Version()},
		Compare: m.Score,
	}
	if kind == lpipsUnclipped {
		out.Head.Metric, out.Unclipped, out.Compare = m.UnclippedID(), true, m.ScoreUnclipped
	}
	return out, nil
}

// close releases the networks and the runtime.
func (n *networkMetrics) close() {
	for _, m := range n.opened {
		m.Close() //nolint:errcheck // nothing was written
	}
	if n.runtime != nil {
		n.runtime.Close()
	}
}
