package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ddiff/api"
	"ddiff/coordinator/board"
	"ddiff/coordinator/serve/cluster"
	"ddiff/internal/cli"
	"ddiff/internal/cli/server"
	"ddiff/manifest"
	"ddiff/queue"
)

// backend is what the verbs need of a cluster: the board of its queue, or the HTTP API of a coordinator.
type backend interface {
	Campaigns(ctx context.Context, archived bool) (api.Campaigns, error)
	Campaign(ctx context.Context, id string) (manifest.CampaignStatus, error)
	SubmitSpec(ctx context.Context, spec *manifest.Spec, o api.Order) (api.Submitted, error)
	Want(ctx context.Context, id string, w manifest.Wanted) (api.Controlled, error)
	SetBudget(ctx context.Context, id string, b manifest.Budget) (manifest.Budget, error)
	Retry(ctx context.Context, id, key string, r api.Retry) (api.Retried, error)
	Append(ctx context.Context, id, key string, a api.Append) (api.Appended, error)
	Logs(ctx context.Context, id, item string) (api.Logs, error)
	Workers(ctx context.Context) (api.Workers, error)
	Tokens(ctx context.Context) (api.Tokens, error)
	CreateToken(ctx context.Context, owner string, role api.Role, days int) (api.Token, error)
	RevokeToken(ctx context.Context, id string) error
}

// backendFlags are the flags that locate a cluster: by its NATS servers, or by a coordinator that serves the API.
type backendFlags struct {
	nats   natsFlags
	server server.Flags
}

// add registers the flags on cmd, and completes the CAMPAIGN argument of a command that has one. Role is the prefix of the reply inboxes.
func (f *backendFlags) add(cmd *cobra.Command, role string) {
	f.nats.role = role
	f.nats.add(cmd)
	if words := strings.Fields(cmd.Use); len(words) > 1 && strings.Trim(words[1], "[]") == "CAMPAIGN" {
		cmd.ValidArgsFunction = f.completeCampaigns
	}
	f.server.Add(cmd.Flags(), "in place of --nats ($"+server.Env+")")
}

// The roles of commands on NATS: roleAdmin has the permissions of a coordinator.
const roleUser, roleAdmin = "command", "coordinator"

// verb adds the flags that locate a cluster to a command, which calls run with this cluster.
func verb(cmd *cobra.Command, role string, run func(cmd *cobra.Command, b backend, args []string) error) *cobra.Command {
	var flags backendFlags
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cmd.SetContext(asUser(cmd.Context()))
		return flags.with(cmd.Context(), func(b backend) error { return run(cmd, b, args) })
	}
	flags.add(cmd, role)
	return cmd
}

// asUser returns a copy of ctx in the name of the account that runs the command, for the leader's log.
func asUser(ctx context.Context) context.Context {
	by := "unknown"
	if u, err := user.Current(); err == nil {
		by = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		by += "@" + host
	}
	return board.As(ctx, "", by)
}

// show prints a record of the cluster as JSON, or as text.
func show[T any](cmd *cobra.Command, asJSON bool, record T, text func(out io.Writer, record T) error) error {
	if asJSON {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(record)
	}
	var page bytes.Buffer // a table writes each of its cells
	if err := text(&page, cli.Clean(record)); err != nil {
		return err
	}
	_, err := page.WriteTo(cmd.OutOrStdout())
	return err
}

// with calls use with the cluster that the flags name.
func (f backendFlags) with(ctx context.Context, use func(b backend) error) error {
	if f.server.Address != "" && f.nats.url != "" {
		return cli.Usage(errors.New("--server and --nats exclude each other; give one of them"))
	}
	if f.nats.url == "" {
		f.server.Address = cmp.Or(f.server.Address, os.Getenv(server.Env))
	}
	if f.server.Address != "" {
		c, err := f.server.Client()
		if err != nil {
			return err
		}
		return use(c)
	}
	return f.nats.withBoard(ctx, func(b *queue.Board) error {
		c := cluster.New(cluster.Config{Board: b, Catalogue: manifest.Catalogue{}})
		defer c.Close()
		return use(c)
	})
}

// The environment variables behind the flags of NATS.
const (
	envNATSURL   = "DDIFF_NATS_URL"
	envNATSCreds = "DDIFF_NATS_CREDS"
	envNATSSeed  = "DDIFF_NATS_NKEY"
	envNATSCA    = "DDIFF_NATS_CA"
	envNATSCert  = "DDIFF_NATS_CERT"
	envNATSKey   = "DDIFF_NATS_KEY"
)

// natsFlags are the flags that locate the NATS servers of a cluster. A missing flag takes the value of its environment
// variable. The address is not the default value of its flag, because help texts show defaults and an address may hold
// a password.
type natsFlags struct {
	url                   string
	creds, seed           string
	caFile, cert, certKey string
	wait                  time.Duration
	role                  string // prefix of the reply inboxes, for commands with a role
}

func (f *natsFlags) add(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVar(&f.url, "nats", "", "`addresses` of NATS servers, nats://host:4222 or tls://host:4222, separated by commas ($"+envNATSURL+")")
	set.StringVar(&f.creds, "creds", "", "`file` with NATS credentials ($"+envNATSCreds+")")
	set.StringVar(&f.seed, "nkey", "", "`file` with a NATS NKey seed ($"+envNATSSeed+")")
	set.StringVar(&f.caFile, "nats-ca", "", "PEM `file` with the authorities of the NATS servers' certificates ($"+envNATSCA+")")
	set.StringVar(&f.cert, "nats-cert", "", "PEM `file` with this client's certificate ($"+envNATSCert+")")
	set.StringVar(&f.certKey, "nats-key", "", "PEM `file` with the key of --nats-cert ($"+envNATSKey+")")
	set.DurationVar(&f.wait, "nats-wait", 0, "how long to retry the first connection")
}

// config returns how to connect under a name.
func (f natsFlags) config(name string, log *slog.Logger) (queue.ConnectConfig, error) {
	or := func(given, env string) string {
		if given != "" {
			return given
		}
		return os.Getenv(env)
	}
	cfg := queue.ConnectConfig{
		URL: or(f.url, envNATSURL), Name: name, Role: f.role,
		CAFile: or(f.caFile, envNATSCA), CertFile: or(f.cert, envNATSCert), KeyFile: or(f.certKey, envNATSKey),
		Credentials: f.creds, NKeySeed: f.seed, Wait: f.wait, Logger: log,
	}
	if f.creds == "" && f.seed == "" {
		cfg.Credentials, cfg.NKeySeed = os.Getenv(envNATSCreds), os.Getenv(envNATSSeed)
	}
	if cfg.URL == "" {
		return cfg, cli.Usage(errors.New("--nats is missing; give --nats nats://host:4222, or set $" + envNATSURL))
	}
	switch {
	case cfg.Credentials != "" && cfg.NKeySeed != "":
		return cfg, cli.Usage(errors.New("--creds and --nkey exclude each other; give one of them"))
	case (cfg.CertFile == "") != (cfg.KeyFile == ""):
		return cfg, cli.Usage(errors.New("--nats-cert and --nats-key belong together; give both or none"))
	}
	if err := cfg.Validate(); err != nil {
		return cfg, cli.Usage(fmt.Errorf("--nats: %w", err))
	}
	return cfg, nil
}

// connect connects to the cluster. The caller closes the connection.
func (f natsFlags) connect(ctx context.Context, name string, log *slog.Logger) (*queue.Conn, error) {
	cfg, err := f.config(name, log)
	if err != nil {
		return nil, err
	}
	return queue.Connect(ctx, cfg)
}

// withBoard connects to a cluster, calls use with its board, and disconnects.
func (f natsFlags) withBoard(ctx context.Context, use func(b *queue.Board) error) error {
	f.role = cmp.Or(f.role, roleUser)
	nc, err := f.connect(ctx, "ddiff-command", slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer nc.Close()
	b, err := queue.OpenBoard(ctx, nc, nil)
	if err != nil {
		return err
	}
	return use(b)
}

// completionDeadline bounds how long a completion waits for the board: a person waits for the shell.
const completionDeadline = time.Second

// completeCampaigns completes the first argument of a command with the ids on the cluster's board. Without a board, or
// with a slow one, there is nothing to complete.
func (f *backendFlags) completeCampaigns(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionDeadline)
	defer cancel()
	found := make(chan []string, 1)
	go func() {
		var ids []string
		// Without a board there are no ids; the shell shows no errors.
		_ = f.with(ctx, func(b backend) error {
			all, err := b.Campaigns(ctx, false)
			for _, s := range all.Campaigns {
				ids = append(ids, cli.Printable(s.Campaign.ID)+"\t"+cli.Printable(string(s.Campaign.Phase)))
			}
			return err
		})
		found <- ids
	}()
	select {
	case ids := <-found:
		return ids, cobra.ShellCompDirectiveNoFileComp
	case <-ctx.Done(): // a connection attempt may outlive ctx
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}
