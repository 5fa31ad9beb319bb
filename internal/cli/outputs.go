package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"ddiff/internal/dataset"
	"ddiff/internal/redact"
	"ddiff/internal/report"
	"ddiff/internal/report/result"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
	"ddiff/telemetry"
)

// KeyTuning is the key of the record of a tuning in its output.
const KeyTuning = "tuning.json"

// OpenOutputs opens outputs for reading.
func OpenOutputs(ctx context.Context, args []string) (outputs []result.Output, closeAll func(), err error) {
	var opened []*storage.Opened
	closeAll = func() {
		for _, o := range opened {
			o.Close() //nolint:errcheck // nothing was written
		}
	}
	for _, arg := range args {
		err := CheckOutput(arg)
		var o *storage.Opened
		if err == nil {
			o, err = storage.Open(ctx, arg, storage.Options{ReadOnly: true, Logger: slog.New(slog.DiscardHandler)})
		}
		if err != nil {
			closeAll()
			return nil, nil, fmt.Errorf("open output: %w", err)
		}
		opened = append(opened, o)
		outputs = append(outputs, result.Output{Address: arg, Store: o.Store})
	}
	return outputs, closeAll, nil
}

// CheckOutput returns an error for a path of this machine that is no directory.
func CheckOutput(arg string) error {
	if manifest.IsAddress(arg) {
		return nil
	}
	switch info, err := os.Stat(arg); {
	case errors.Is(err, os.ErrNotExist):
		return Usage(fmt.Errorf("%s: no such directory; give the directory or the address of an output", arg))
	case err == nil && !info.IsDir():
		return Usage(fmt.Errorf("%s: is a file; give the directory or the address of an output", arg))
	}
	return nil
}

// CheckTarget returns an error for a directory of this machine that is no output, and has a file with the name of one of a report: writing
// an output there would replace it.
func CheckTarget(dir string) error {
	has := func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	}
	if manifest.IsAddress(dir) || has(item.ItemsFolder) || has(report.KeyDigests) {
		return nil
	}
	for _, key := range report.Keys() {
		if has(key) {
			return Usage(fmt.Errorf("%s is no output of ddiff, and has a file %s, which the report would replace; give another directory", dir, key))
		}
	}
	return nil
}

// AtLeastOne yields the results, or an error if there are none.
func AtLeastOne(results iter.Seq2[item.Result, error], args []string) iter.Seq2[item.Result, error] {
	return func(yield func(item.Result, error) bool) {
		n := 0
		for r, err := range results {
			if errors.Is(err, result.ErrFilter) {
				err = Usage(fmt.Errorf("--where: %w", err))
			}
			if n++; !yield(r, err) {
				return
			}
		}
		if n == 0 {
			yield(item.Result{}, Usage(fmt.Errorf("%s: no result matches; check the path and --where", strings.Join(args, ", "))))
		}
	}
}

// modelBytes is the size limit of priors and operator files, the largest objects of a cluster.
const modelBytes int64 = modelfile.MaxFileBytes

// OpenClusterStore opens the store of a cluster, which holds priors of up to modelBytes.
func OpenClusterStore(ctx context.Context, address string, log *slog.Logger) (*storage.Opened, error) {
	store, err := storage.Open(ctx, address, storage.Options{MaxBytes: modelBytes, Logger: log})
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", redact.Address(address), err)
	}
	return store, nil
}

// TracedStore returns the store at an address with spans and metrics.
func TracedStore(store storage.Store, address string, tel *telemetry.Telemetry, transfer *telemetry.Transfer) *storage.Traced {
	bucket := ""
	if c, err := storage.ParseS3URL(address); err == nil {
		bucket = c.Bucket
	}
	return storage.NewTraced(store, tel.Tracer("storage"), transfer, bucket)
}

// OpenModels opens the sources of priors and operator files. The store keeps a copy of each file, so they have no cache.
func (s SourceFlags) OpenModels(store string, log *slog.Logger) (Datasets, error) {
	return s.openWith(store, log, func(c *dataset.Config) {
		c.MaxBytes, c.CacheBytes, c.CheckImage, c.CheckOther = modelBytes, -1, nil, nil
	})
}
