// Package server opens the HTTP API of a cluster that flags and the environment name, and keeps the tokens of ddiff login.
package server

import (
	"cmp"
	"errors"
	"fmt"
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

// DefaultListen is where a coordinator listens without flags, Default its address, which commands ask without any.
const (
	DefaultListen = "127.0.0.1:8620"
	Default       = "http://" + DefaultListen
)

// Flags name a coordinator.
type Flags struct {
	// Address is that of the coordinator, as in https://host:8620.
	Address string
	ca      string
}

// Add registers the flags. Use is the help of --server: what it names the server for.
func (f *Flags) Add(set *pflag.FlagSet, use string) {
	set.StringVar(&f.Address, "server", "", "`address` of a coordinator, as in https://host:8620 ("+use+")")
	set.StringVar(&f.ca, "server-ca", "", "PEM `file` with the authorities of the server's certificate ($"+envCA+")")
}

// Named returns the address of --server or of its variable; empty: none is given.
func (f *Flags) Named() string { return cmp.Or(f.Address, os.Getenv(Env)) }

// Client returns a client of the named server or else of the one of this machine. Its token is that of [Flags.token]. The error is that of
// [cli.Usage].
func (f *Flags) Client() (*api.Client, error) {
	token, err := f.token()
	if err != nil {
		return nil, cli.Usage(err)
	}
	return f.client(cmp.Or(f.Named(), Default), token)
}

// token returns the token of $DDIFF_TOKEN, of ddiff login, or on this machine that of its user. The default address gets only the last one: any
// user of this machine may listen there.
func (f *Flags) token() (token string, err error) {
	address := f.Named()
	token = os.Getenv(envToken)
	switch {
	case address == "" && token != "":
		return "", fmt.Errorf("name the server of $%s with --server or $%s", envToken, Env)
	case address != "" && token == "":
		token, err = stored(address)
	}
	return cmp.Or(token, localpage.Secret(cmp.Or(address, Default))), err
}

func (f *Flags) client(address, token string) (*api.Client, error) {
	c, err := api.NewClient(api.ClientConfig{URL: address, Token: token, CAFile: cmp.Or(f.ca, os.Getenv(envCA))})
	if err != nil {
		return nil, cli.Usage(err)
	}
	return c, nil
}

// Explain adds the remedy to the error of a request: to name a server, or to give a token.
func (f *Flags) Explain(err error) error {
	var answer *api.Error
	switch {
	case errors.Is(err, api.ErrNoToken):
		return fmt.Errorf("%w; sign in with: ddiff login --server %s, and name this server in further commands", err, cmp.Or(f.Named(), Default))
	case f.Named() == "" && errors.Is(err, api.ErrUnavailable) && !errors.As(err, &answer):
		return fmt.Errorf("%w; start ddiff coordinator on this machine, or name another with --server or $%s", err, Env)
	}
	return err
}
