package lookup

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ddiff/coordinator/report/table"
	"ddiff/internal/cli"
	"ddiff/restore/prior"
)

func newPriorCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "prior", Short: "Inspect and check score models, and edit their cards"}
	var asJSON bool
	inspect := &cobra.Command{
		Use: "inspect FILE|DIR|bundled", Short: "Print a prior's card", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return inspectPrior(cmd.OutOrStdout(), args[0], asJSON) },
	}
	inspect.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	var settings []string
	var target string
	card := &cobra.Command{
		Use: "card FILE", Short: "Set entries of a prior's model card", Args: cobra.ExactArgs(1),
		Example: "  ddiff prior card unet.onnx --set card=1 --set name=ffhq \\\n      --set prediction=epsilon",
		RunE: func(cmd *cobra.Command, args []string) error {
			if target == "" {
				target = args[0]
			}
			return writeCard(cmd.OutOrStdout(), args[0], target, settings)
		},
	}
	card.Flags().StringArrayVar(&settings, "set", nil, "`KEY=VALUE`, repeatable; keys: "+
		strings.Join(slices.Concat(prior.Keys()), ", "))
	card.Flags().StringVarP(&target, "out", "o", "", "write to this file instead of replacing FILE")
	cmd.AddCommand(inspect, card, newPriorCheckCommand())
	return cmd
}

func inspectPrior(out io.Writer, path string, asJSON bool) error {
	p, err := cli.OpenPrior(path)
	if err != nil {
		return err
	}
	c := p.Card
	if asJSON {
		return json.NewEncoder(out).Encode(map[string]any{
			"file": path, "sha256": p.SHA256, "parameters": p.Parameters(), "opset": p.Opset(), "card": c,
		})
	}
	w := table.NewWriter(out, table.Texts)
	rows := [][2]any{
		{"file", path}, {"sha256", p.SHA256}, {"name", c.Name}, {"prediction", c.Prediction},
		{"schedule", c.Schedule}, {"steps", p.Schedule.Steps()}, {"range", c.Range}, {"channels", c.Channels},
		{"multiple of", c.MultipleOf}, {"learned variance", c.LearnedVariance}, {"parameters", p.Parameters()},
		{"operator set", p.Opset()}, {"licence", c.License}, {"training", c.Training},
	}
	if l := c.Latent; l != nil {
		rows = append(rows, [][2]any{
			{"first stage", l.FirstStage}, {"latent channels", l.Channels}, {"factor", l.Factor}, {"scale", l.Scale}, {"class", l.Class},
			{"gradient of the decoder", cmp.Or(l.NoGradient, "available")},
		}...)
	}
	for _, row := range rows {
		fmt.Fprintf(w, "%v\t%v\n", row[0], row[1])
	}
	return w.Flush()
}

// writeCard sets entries of a prior's card; graph and weights do not change.
func writeCard(out io.Writer, path, target string, settings []string) error {
	entries, err := prior.Entries(settings)
	if err != nil {
		return cli.Usage(err)
	}
	if len(entries) == 0 {
		return cli.Usage(fmt.Errorf("no entry to set: use --set KEY=VALUE"))
	}
	if err := prior.SetCard(path, target, entries); err != nil {
		return fmt.Errorf("%w: %w", cli.ErrPrior, err)
	}
	fmt.Fprintf(out, "wrote %d entries to %s\n", len(entries), target)
	return nil
}
