package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"ddiff/internal/cli"
	"ddiff/internal/queue"
)

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
	role                  string // prefix of the reply inboxes
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
