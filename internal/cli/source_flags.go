package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/spf13/pflag"

	"ddiff/internal/dataset"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/raster"
	"ddiff/storage"
	"ddiff/telemetry"
)

// SourceFlags are the flags that restrict where datasets are read from.
type SourceFlags struct {
	hosts     []string
	networks  []string
	endpoints []string
	allowHTTP bool
	caFile    string
	cacheMiB  int64
}

// Add registers the flags.
func (s *SourceFlags) Add(f *pflag.FlagSet) {
	f.StringSliceVar(&s.hosts, "allow-host", nil, "web `servers` to read datasets from, as in example.org or *.example.org (default: all public servers)")
	f.StringSliceVar(&s.networks, "allow-network", nil, "private `networks` to read datasets from, as in 10.0.0.0/8")
	f.StringSliceVar(&s.endpoints, "allow-endpoint", nil, "S3 `endpoints` that the address of a dataset may name, also private ones and over http (default: any public one)")
	f.BoolVar(&s.allowHTTP, "allow-http", false, "also read datasets over http://")
	f.StringVar(&s.caFile, "source-ca", "", "PEM `file` with authorities to trust for web servers, in addition to the system's")
	f.Int64Var(&s.cacheMiB, "source-cache", 0, "`MiB` of dataset files to cache on this machine (0: automatic, -1: none)")
}

// Datasets are sources whose errors state whether a retry can help.
type Datasets struct {
	*dataset.Sources
	Transfer *telemetry.Transfer // counts bytes; nil: nothing
}

// Get reads the bytes at an address. A permanent error wraps job.ErrInput, a transient one
// storage.ErrUnavailable.
func (d Datasets) Get(ctx context.Context, path string) ([]byte, error) {
	data, err := d.Sources.Get(ctx, path)
	if d.Transfer != nil && err == nil {
		d.Transfer.Dataset(ctx, len(data))
	}
	for _, permanent := range []error{
		dataset.ErrAddress, dataset.ErrRefused, dataset.ErrTooLarge, dataset.ErrChanged, dataset.ErrBadArchive,
	} {
		if errors.Is(err, permanent) {
			return nil, fmt.Errorf("%w: %w", job.ErrInput, err)
		}
	}
	return data, err
}

// checkOther is the check of an address that does not tell its format: of an image, an array or a network.
func checkOther(beginning []byte, size int64) error {
	const firstOfONNX = 0x08 // the tag of the first field, ir_version
	if len(beginning) > 0 && beginning[0] == firstOfONNX {
		return nil
	}
	return raster.SniffAny(beginning, size)
}

// Config returns the validated configuration of the sources. Datasets may be on the server of the store at an address.
func (s SourceFlags) Config(store string, logger *slog.Logger) (dataset.Config, error) {
	cfg := dataset.Config{
		Hosts: s.hosts, Endpoints: s.endpoints, AllowHTTP: s.allowHTTP, CAFile: s.caFile,
		CacheBytes: s.cacheMiB << 20, Logger: logger, CheckImage: raster.Sniff, CheckOther: checkOther,
	}
	if c, err := storage.ParseS3URL(store); err == nil { // otherwise not on S3, or it cannot be opened
		cfg.OwnEndpoints = []string{c.Endpoint}
	}
	for _, text := range s.networks {
		n, err := netip.ParsePrefix(text)
		if err != nil {
			return cfg, Usage(fmt.Errorf("--allow-network: %q is not a network; write it as in 10.0.0.0/8", text))
		}
		cfg.Networks = append(cfg.Networks, n)
	}
	if err := cfg.Validate(); err != nil {
		return cfg, Usage(err)
	}
	return cfg, nil
}

// Open opens the sources.
func (s SourceFlags) Open(store string, logger *slog.Logger) (Datasets, error) {
	return s.openWith(store, logger, func(*dataset.Config) {})
}

// openWith opens the sources with changes of their configuration.
func (s SourceFlags) openWith(store string, logger *slog.Logger, change func(c *dataset.Config)) (Datasets, error) {
	cfg, err := s.Config(store, logger)
	if err != nil {
		return Datasets{}, err
	}
	change(&cfg)
	sources, err := dataset.New(cfg)
	if err != nil { // the configuration is valid, so a file is not
		return Datasets{}, Usage(fmt.Errorf("--source-ca: %w", err))
	}
	return Datasets{Sources: sources}, nil
}
