package results

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"iter"
	"math"

	"github.com/spf13/cobra"

	"ddiff/coordinator/report/comparison"
	"ddiff/coordinator/report/result"
	"ddiff/coordinator/shard"
	"ddiff/internal/cli"
	"ddiff/manifest"
)

// rulesOptions are the flags of rules.
type rulesOptions struct {
	catalogue shard.Catalogue
	where     []string
	of        int
	within    float64
	rotated   bool
	json      bool
}

func newRulesCommand(c shard.Catalogue) *cobra.Command {
	o := rulesOptions{catalogue: c}
	cmd := &cobra.Command{
		Use:   "rules OUTPUT...",
		Short: "Measure how often each selection rule picks a good run",
		Long: "Measure the rules of --select on outputs whose measurements have several runs and a truth: how often each rule picks\n" +
			"a good run among a few, and the PSNR of the run that it picks. Nothing is solved again. The figures are exact over all\n" +
			"choices among the runs of a measurement; their intervals are over images.",
		Example: "  ddiff rules out/phase\n" +
			"  ddiff rules out/phase --where size=128x128 --of 8 --within 0.5",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.where, "where", nil, "only results with `NAME=VALUE[,VALUE]`: a column of results.csv, a parameter or a setting; repeatable")
	f.IntVar(&o.of, "of", 4, "`number` of runs from which a rule chooses")
	f.Float64Var(&o.within, "within", 1, "a run is good within this many `dB` of the highest PSNR among all runs of its measurement")
	f.BoolVar(&o.rotated, "rotated", false, "rotate a restored image by 180° where this brings it closer to the truth, and measure its PSNR then")
	f.BoolVar(&o.json, "json", false, "print the figures as a JSON object")
	return cmd
}

func (o rulesOptions) run(ctx context.Context, args []string, stdout io.Writer) error {
	if o.of < 1 {
		return cli.Usage(fmt.Errorf("rules: --of %d is below 1", o.of))
	}
	if !(o.within >= 0) || math.IsInf(o.within, 0) {
		return cli.Usage(fmt.Errorf("rules: --within %g is not a finite number from 0", o.within))
	}
	filter, err := result.ParseFilter(o.where)
	if err != nil {
		return cli.Usage(fmt.Errorf("rules: --where: %w", err))
	}
	outputs, closeAll, err := cli.OpenOutputs(ctx, args)
	if err != nil {
		return err
	}
	defer closeAll()
	results := cli.AtLeastOne(filter.Select(result.Results(ctx, outputs)), args)
	var found rulesFound
	if o.rotated {
		results = found.rotate(ctx, result.Folder{Outputs: outputs}, results)
	}
	found.Choices, err = comparison.Choose(results, o.catalogue.Operators, o.of, o.within)
	if errors.Is(err, comparison.ErrNotComparable) {
		return cli.Usage(fmt.Errorf("rules: %w", err))
	}
	if err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(stdout).Encode(found)
	}
	if err := found.WriteText(stdout); err != nil || !o.rotated {
		return err
	}
	_, err = fmt.Fprintf(stdout, "rotated by 180°: %d of %d runs, which are closer to the truth then. SSIM is not measured.\n", found.Rotated, found.Compared)
	return err
}

// rulesFound is the output of rules.
type rulesFound struct {
	*comparison.Choices
	// Rotated counts the runs that are closer to the truth after a rotation by 180°, Compared all runs with --rotated.
	Rotated  int `json:"rotated,omitempty"`
	Compared int `json:"compared,omitempty"`
}

// rotate yields the results with the PSNR of the closer of the restored image and its rotation by 180°, and without
// SSIM. The difference of the two is that of the stored pictures, which have 8 bits.
func (f *rulesFound) rotate(ctx context.Context, from result.Folder, results iter.Seq2[manifest.Result, error]) iter.Seq2[manifest.Result, error] {
	return func(yield func(manifest.Result, error) bool) {
		for r, err := range results {
			if err == nil && r.Outcome == manifest.OutcomeDone && r.Metrics.PSNR != nil {
				var gain float64
				if gain, err = rotationGain(ctx, from, &r); err != nil {
					err = fmt.Errorf("rotate %s: %w", r.Item.Name, err)
				}
				f.Compared++
				if gain > 0 {
					f.Rotated++
					r.Metrics.PSNR = new(*r.Metrics.PSNR + gain)
				}
				r.Metrics.SSIM = nil
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// rotationGain returns how much a rotation by 180° increases the PSNR of a restored image, in dB.
func rotationGain(ctx context.Context, from result.Folder, r *manifest.Result) (float64, error) {
	var pictures [2]image.Image
	for i, file := range []string{manifest.FileRestored, manifest.FileTruth} {
		data, err := from.Artifact(ctx, r.Item.ID, file, r.Artifacts[file])
		if err != nil {
			return 0, err
		}
		if pictures[i], err = png.Decode(bytes.NewReader(data)); err != nil {
			return 0, fmt.Errorf("decode %s: %w", file, err)
		}
	}
	x, truth := pictures[0], pictures[1]
	b := x.Bounds()
	if b != truth.Bounds() {
		return 0, fmt.Errorf("restored image of %v, truth of %v", b.Size(), truth.Bounds().Size())
	}
	var upright, rotated float64
	for row := range b.Dy() {
		for col := range b.Dx() {
			t := truth.At(b.Min.X+col, b.Min.Y+row)
			upright += distance(x.At(b.Min.X+col, b.Min.Y+row), t)
			rotated += distance(x.At(b.Max.X-1-col, b.Max.Y-1-row), t)
		}
	}
	if upright == rotated {
		return 0, nil
	}
	return 10 * math.Log10(upright/rotated), nil
}

// distance is the sum of the squared differences of two colours.
func distance(a, b color.Color) float64 {
	r, g, l, _ := a.RGBA()
	s, h, m, _ := b.RGBA()
	square := func(x, y uint32) float64 { d := float64(x) - float64(y); return d * d }
	return square(r, s) + square(g, h) + square(l, m)
}
