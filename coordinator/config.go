package coordinator

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/prior"
)

// work is the campaign's queue.
type work interface {
	Reset(ctx context.Context) error
	PublishBatch(ctx context.Context, batch []queue.Work) error
	Results(ctx context.Context, after uint64) iter.Seq2[queue.Result, error]
}

// store is where results are.
type store interface {
	Get(ctx context.Context, key string) ([]byte, error)
	Put(ctx context.Context, key string, data []byte) error
}

// sources is where datasets are read.
type sources interface {
	Get(ctx context.Context, path string) ([]byte, error)
}

// Config describes one campaign's coordinator. All fields but Rows, Finished, Skipped and Now are
// required.
type Config struct {
	// Spec is a valid campaign.
	Spec    *manifest.Spec
	Prior   *prior.Prior
	Queue   work
	Store   store
	Sources sources
	// Rows reads the dataset. Default: manifest.Rows.
	Rows shard.Rows
	// Finished is told of every item that reaches its final state, found or new, in turn.
	Finished func(r manifest.Result, found bool)
	// Skipped is told of files of the dataset that are no images.
	Skipped func(path string)
	// Now is the clock. Default: time.Now.
	Now    func() time.Time
	Logger *slog.Logger
	Tracer trace.Tracer
}

// Validate names the first field that is missing.
func (c Config) Validate() error {
	switch {
	case c.Spec == nil:
		return errors.New("Spec is missing")
	case c.Prior == nil:
		return errors.New("Prior is missing")
	case c.Queue == nil:
		return errors.New("Queue is missing")
	case c.Store == nil:
		return errors.New("Store is missing")
	case c.Sources == nil:
		return errors.New("Sources is missing")
	case c.Logger == nil:
		return errors.New("Logger is missing")
	case c.Tracer == nil:
		return errors.New("Tracer is missing")
	}
	return nil
}
