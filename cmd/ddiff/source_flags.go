package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/spf13/pflag"

	"ddiff/dataset"
	"ddiff/gpuworker"
	"ddiff/storage"
)

// sourceFlags say from where datasets may be read.
type sourceFlags struct {
	hosts     []string
	networks  []string
	endpoints []string
	allowHTTP bool
	caFile    string
	cacheMiB  int64
}

func (s *sourceFlags) add(f *pflag.FlagSet) {
	f.StringSliceVar(&s.hosts, "allow-host", nil, "web servers that datasets may be read from, as example.org or *.example.org (default: every public one)")
	f.StringSliceVar(&s.networks, "allow-network", nil, "private networks that datasets may be read from, as 10.0.0.0/8")
	f.StringSliceVar(&s.endpoints, "allow-endpoint", nil, "S3 endpoints that a dataset's address may name (default: any)")
	f.BoolVar(&s.allowHTTP, "allow-http", false, "read datasets over http:// as well")
	f.StringVar(&s.caFile, "source-ca", "", "PEM file of authorities that are trusted for web servers, besides the system's")
	f.Int64Var(&s.cacheMiB, "source-cache", 0, "MiB of dataset files that are kept on this machine (0: chosen, -1: none)")
}

// datasets are sources whose errors say whether another attempt would help.
type datasets struct{ *dataset.Sources }

// Get reads the bytes at an address. What no further attempt changes is the input's fault.
func (d datasets) Get(ctx context.Context, path string) ([]byte, error) {
	data, err := d.Sources.Get(ctx, path)
	for _, final := range []error{
		dataset.ErrAddress, dataset.ErrRefused, dataset.ErrTooLarge, dataset.ErrChanged, dataset.ErrBadArchive,
	} {
		if errors.Is(err, final) {
			return nil, fmt.Errorf("%w: %w", gpuworker.ErrInput, err)
		}
	}
	if errors.Is(err, dataset.ErrUnavailable) {
		return nil, fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
	}
	return data, err
}

// open makes the sources.
func (s sourceFlags) open(logger *slog.Logger) (datasets, error) {
	cfg := dataset.Config{
		Hosts: s.hosts, Endpoints: s.endpoints, AllowHTTP: s.allowHTTP, CAFile: s.caFile,
		CacheBytes: s.cacheMiB << 20, Logger: logger,
	}
	for _, text := range s.networks {
		n, err := netip.ParsePrefix(text)
		if err != nil {
			return datasets{}, usageError{fmt.Errorf("--allow-network: %q is no network; write 10.0.0.0/8", text)}
		}
		cfg.Networks = append(cfg.Networks, n)
	}
	if err := cfg.Validate(); err != nil {
		return datasets{}, usageError{err}
	}
	sources, err := dataset.New(cfg)
	return datasets{sources}, err
}
