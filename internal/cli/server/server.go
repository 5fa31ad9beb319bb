// Package server opens the HTTP API of a cluster that flags and the environment name.
package server

import (
	"cmp"
	"os"

	"github.com/spf13/pflag"

	"ddiff/api"
	"ddiff/internal/cli"
	"ddiff/internal/cli/localpage"
)

// The environment variables behind the flags. A token has no flag: other users can see the arguments of a process.
const (
	Env      = "DDIFF_SERVER"
	envCA    = "DDIFF_SERVER_CA"
	envToken = "DDIFF_TOKEN"
)

// Flags name a coordinator with --listen.
type Flags struct {
	// Address is that of the coordinator, as in https://host:8080.
	Address string
	ca      string
}

// Add registers the flags. Use is the help of --server: what it names the server for.
func (f *Flags) Add(set *pflag.FlagSet, use string) {
	set.StringVar(&f.Address, "server", "", "`address` of a coordinator with --listen, "+use+"; $"+envToken+" has the access token")
	set.StringVar(&f.ca, "server-ca", "", "PEM `file` with the authorities of the server's certificate ($"+envCA+")")
}

// Client returns a client of the server. On this machine the token is by default that of its user. The error is that of [cli.Usage].
func (f *Flags) Client() (*api.Client, error) {
	token := os.Getenv(envToken)
	if token == "" {
		token = localpage.Secret(f.Address)
	}
	c, err := api.NewClient(api.ClientConfig{URL: f.Address, Token: token, CAFile: cmp.Or(f.ca, os.Getenv(envCA))})
	if err != nil {
		return nil, cli.Usage(err)
	}
	return c, nil
}
