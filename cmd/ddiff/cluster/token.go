package cluster

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"ddiff/api"
	"ddiff/internal/cli"
	"ddiff/internal/report/table"
)

func newTokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "token", Short: "Create, list and revoke access tokens of the HTTP API",
		Long: "Create, list and revoke access tokens of coordinators. This needs a token with the role admin, such as that of\n" +
			"ddiff coordinator --admin-token.",
	}
	cmd.AddCommand(newTokenCreateCommand(), newTokenListCommand(), newTokenRevokeCommand())
	return cmd
}

func newTokenCreateCommand() *cobra.Command {
	var owner, role string
	var days int
	cmd := verb(&cobra.Command{
		Use: "create", Short: "Create an access token and print it",
		Long: "Create an access token and print it. Only its SHA-256 is stored: the token cannot be shown again.",
		Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if days == 0 { // the default of a request without days
				return cli.Usage(errors.New("--days: 0 is outside 1..3650"))
			}
			return nil
		},
	}, func(cmd *cobra.Command, c *api.Client, _ []string) error {
		t, err := c.CreateToken(cmd.Context(), owner, api.Role(role), days)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), t.Secret)
		return err
	})
	cmd.Flags().StringVar(&owner, "owner", "", "`name` of the person or program, which owns the campaigns that it submits")
	cmd.Flags().StringVar(&role, "role", string(api.Viewer), "`role`: viewer reads, submitter also changes its own campaigns, admin changes all")
	cmd.Flags().IntVar(&days, "days", api.TokenDays, "`number` of days after which the token ends, 1 to 3650")
	return cmd
}

func newTokenListCommand() *cobra.Command {
	var asJSON bool
	cmd := verb(&cobra.Command{
		Use: "list", Short: "List the access tokens", Args: cobra.NoArgs,
	}, func(cmd *cobra.Command, c *api.Client, _ []string) error {
		all, err := c.Tokens(cmd.Context())
		if err != nil {
			return err
		}
		return show(cmd, asJSON, all.Tokens, func(out io.Writer, tokens []api.Token) error {
			w := table.NewWriter(out)
			fmt.Fprintln(w, "ID\tOWNER\tROLE\tCREATED\tENDS")
			for _, t := range tokens {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", t.ID, t.Owner, t.Role, t.Created.Format(time.DateTime), t.Ends.Format(time.DateTime))
			}
			return w.Flush()
		})
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newTokenRevokeCommand() *cobra.Command {
	return verb(&cobra.Command{
		Use: "revoke ID", Short: "Revoke an access token", Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *api.Client, args []string) error {
		return c.RevokeToken(cmd.Context(), args[0])
	})
}
