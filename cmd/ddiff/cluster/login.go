package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"ddiff/internal/cli"
	"ddiff/internal/cli/server"
)

func newLoginCommand() *cobra.Command {
	var at server.Flags
	cmd := &cobra.Command{
		Use: "login", Short: "Keep the access token of a server",
		Long: "Read an access token from standard input, try it, and keep it for further commands that name the same server. The file\n" +
			"ddiff/tokens.json in $XDG_CONFIG_HOME or ~/.config has the tokens; only you can read it. $DDIFF_TOKEN goes before it.",
		Example: "  ddiff login --server https://host:8620 < token",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			address := at.Named()
			if address == "" { // any user of this machine may listen at the default address
				return cli.Usage(errors.New("login: there is no server; name one with --server or $" + server.Env))
			}
			if cli.TerminalWidth(cmd.ErrOrStderr()) > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "access token of %s: ", cli.Printable(address))
			}
			token, err := cli.ReadSecret(cmd.InOrStdin())
			if err != nil {
				return fmt.Errorf("read the token: %w", err)
			}
			if token = strings.TrimSpace(token); token == "" {
				return cli.Usage(errors.New("login: there is no token on standard input; give one, as in: ddiff login < token"))
			}
			me, err := at.Login(cmd.Context(), address, token)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, %s\n", address, cmp.Or(cli.Printable(me.Owner), "administrator"), me.Role)
			return err
		},
	}
	at.Add(cmd.Flags(), "$"+server.Env)
	return cmd
}
