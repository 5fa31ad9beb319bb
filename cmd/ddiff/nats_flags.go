package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/pflag"

	"ddiff/queue"
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

// natsFlags say how to reach the queue servers of a cluster. A flag that is not given has the
// value of its environment variable. The address is no default of a flag, which a help text
// would show: it may hold a password.
type natsFlags struct {
	url                   string
	creds, seed           string
	caFile, cert, certKey string
	wait                  time.Duration
	role                  string // of the inboxes, set by commands that have one
}

func (f *natsFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.url, "nats", "", "NATS servers, nats://host:4222 or tls://host:4222, separated by commas ($"+envNATSURL+")")
	set.StringVar(&f.creds, "creds", "", "file of NATS credentials ($"+envNATSCreds+")")
	set.StringVar(&f.seed, "nkey", "", "file of a NATS NKey seed ($"+envNATSSeed+")")
	set.StringVar(&f.caFile, "nats-ca", "", "PEM file of authorities that sign the NATS servers' certificates ($"+envNATSCA+")")
	set.StringVar(&f.cert, "nats-cert", "", "PEM file of this client's certificate ($"+envNATSCert+")")
	set.StringVar(&f.certKey, "nats-key", "", "PEM file of its key ($"+envNATSKey+")")
	set.DurationVar(&f.wait, "nats-wait", 0, "how long to go on at the start while no NATS server can be reached")
}

// config is how to connect under a name.
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
		return cfg, usageError{errors.New("say where the NATS servers are: --nats nats://host:4222, or $" + envNATSURL)}
	}
	if err := cfg.Validate(); err != nil {
		return cfg, usageError{err}
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
