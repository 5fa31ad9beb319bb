package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"

	"ddiff/coordinator/notify"
	"ddiff/internal/cli"
	"ddiff/internal/regular"
	"ddiff/queue"
	"ddiff/storage"
)

// notifyFlags permit notifications.
type notifyFlags struct {
	hosts  []string
	secret string
}

func (n *notifyFlags) add(f *pflag.FlagSet) {
	f.StringSliceVar(&n.hosts, "notify-host", nil, "`servers` to which campaigns may send notifications, as in hooks.example.org or hooks.example.org:8443 (default: none)")
	f.StringVar(&n.secret, "notify-secret", "", "`file` with the key that signs notifications, at least 24 bytes")
}

// key reads the key, nil without a server.
func (n *notifyFlags) key() ([]byte, error) {
	if len(n.hosts) == 0 {
		if n.secret != "" {
			return nil, cli.Usage(errors.New("--notify-secret: nothing may be sent; give --notify-host too"))
		}
		return nil, nil
	}
	if n.secret == "" {
		return nil, cli.Usage(errors.New("--notify-host needs a key; give --notify-secret FILE"))
	}
	secret, err := regular.Read(n.secret, regular.MaxConfigBytes)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("--notify-secret: %w", err))
	}
	if secret = bytes.TrimSpace(secret); len(secret) < 24 {
		return nil, cli.Usage(fmt.Errorf("--notify-secret: %s has %d bytes, at least 24 are needed", n.secret, len(secret)))
	}
	return secret, nil
}

// open returns the notifier with a key, nil without one.
func (n *notifyFlags) open(b *queue.Board, s storage.Store, key []byte, logger *slog.Logger) *notify.Notifier {
	if key == nil {
		return nil
	}
	return notify.New(notify.Config{Board: b, Store: s, Hosts: n.hosts, Secret: key, Logger: logger})
}
