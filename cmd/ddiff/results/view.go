package results

import (
	"fmt"

	"github.com/spf13/cobra"

	"ddiff/internal/cli"
	"ddiff/internal/cli/localpage"
	view "ddiff/internal/coordinator/serve/output"
)

func newViewCommand() *cobra.Command {
	var port int
	cmd := &cobra.Command{
		Use:   "view OUT...",
		Short: "Show outputs in the browser",
		Long: "Show outputs, directories or addresses, in the browser of this machine: images with a slider and one zoom, curves, failures,\n" +
			"comparisons. The page follows an output whose run is in progress, and changes nothing. The command prints the address of the\n" +
			"page and serves it until Ctrl-C.",
		Example: "  ddiff view out/photos\n  ddiff view out/a s3://results/b",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			outputs, closeAll, err := cli.OpenOutputs(ctx, args)
			if err != nil {
				return err
			}
			defer closeAll()
			backend, err := view.New(ctx, outputs)
			if err != nil {
				return err
			}
			if port < 0 || port > 65535 {
				return cli.Usage(fmt.Errorf("view: --port %d is outside 0..65535", port))
			}
			page, err := localpage.Start(ctx, backend, port)
			if err != nil {
				return err
			}
			page.Show(ctx, cmd.OutOrStdout())
			return page.Wait(ctx)
		},
	}
	cmd.Flags().IntVar(&port, "port", 0, "`port` of 127.0.0.1; 0 takes a free one")
	return cmd
}
