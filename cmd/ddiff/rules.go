package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"ddiff/coordinator/report"
	"ddiff/coordinator/shard"
)

// rulesOptions are the flags of rules.
type rulesOptions struct {
	catalogue shard.Catalogue
	where     []string
	of        int
	within    float64
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
	f.BoolVar(&o.json, "json", false, "print the figures as a JSON object")
	return cmd
}

func (o rulesOptions) run(ctx context.Context, args []string, stdout io.Writer) error {
	if o.of < 1 {
		return usageError{fmt.Errorf("rules: --of %d is below 1", o.of)}
	}
	if !(o.within >= 0) || math.IsInf(o.within, 0) {
		return usageError{fmt.Errorf("rules: --within %g is not a finite number from 0", o.within)}
	}
	filter, err := report.ParseFilter(o.where)
	if err != nil {
		return usageError{fmt.Errorf("rules: --where: %w", err)}
	}
	outputs, closeAll, err := openOutputs(ctx, args)
	if err != nil {
		return err
	}
	defer closeAll()
	c, err := report.Choose(atLeastOne(filter.Select(report.Results(ctx, outputs)), args), o.catalogue.Operators, o.of, o.within)
	if errors.Is(err, report.ErrNotComparable) {
		return usageError{fmt.Errorf("rules: %w", err)}
	}
	if err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(stdout).Encode(c)
	}
	return c.WriteText(stdout)
}
