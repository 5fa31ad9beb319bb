package cluster

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"ddiff/api"
	"ddiff/coordinator/serve/cluster"
	"ddiff/coordinator/shard"
	"ddiff/internal/cli"
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
	Notify(ctx context.Context, id string) (api.Controlled, error)
	Deliveries(ctx context.Context, id string) (api.Deliveries, error)
	Dead(ctx context.Context, id string) (api.DeadLetters, error)
	Logs(ctx context.Context, id, item string) (api.Logs, error)
	Workers(ctx context.Context) (api.Workers, error)
	Tokens(ctx context.Context) (api.Tokens, error)
	CreateToken(ctx context.Context, owner string, role api.Role) (api.Token, error)
	RevokeToken(ctx context.Context, id string) error
}

// The environment variables behind the flags of a server. A token has no flag: other users can see the arguments of a process.
const (
	envServer   = "DDIFF_SERVER"
	envServerCA = "DDIFF_SERVER_CA"
	envToken    = "DDIFF_TOKEN"
)

// backendFlags are the flags that locate a cluster: by its NATS servers, or by a coordinator that serves the API.
type backendFlags struct {
	nats       natsFlags
	server, ca string
}

// add registers the flags on cmd, and completes the CAMPAIGN argument of a command that has one.
func (f *backendFlags) add(cmd *cobra.Command) {
	f.nats.role = "command"
	f.nats.add(cmd)
	f.complete(cmd)
	set := cmd.Flags()
	set.StringVar(&f.server, "server", "", "`address` of a coordinator with --listen, in place of --nats; $"+envToken+" has the access token ($"+envServer+")")
	set.StringVar(&f.ca, "server-ca", "", "PEM `file` with the authorities of the server's certificate ($"+envServerCA+")")
}

// with calls use with the cluster that the flags name.
func (f backendFlags) with(ctx context.Context, use func(b backend) error) error {
	if f.server != "" && f.nats.url != "" {
		return cli.Usage(errors.New("--server and --nats exclude each other; give one of them"))
	}
	if f.server == "" && f.nats.url == "" {
		f.server = os.Getenv(envServer)
	}
	if f.server != "" {
		if f.ca == "" {
			f.ca = os.Getenv(envServerCA)
		}
		c, err := api.NewClient(api.ClientConfig{URL: f.server, Token: os.Getenv(envToken), CAFile: f.ca})
		if err != nil {
			return cli.Usage(err)
		}
		return use(c)
	}
	return f.nats.withQueue(ctx, func(b *queue.Board, inspect func(campaign string) (*queue.Queue, error)) error {
		c := cluster.New(cluster.Config{Board: b, Inspect: inspect, Catalogue: shard.Catalogue{}})
		defer c.Close()
		return use(c)
	})
}
