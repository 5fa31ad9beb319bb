// Package enginecache opens the priors and operator files of campaigns on a worker's machine. It owns their copies on the local disk,
// which several processes may share, and the memory of their engines.
package enginecache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"ddiff/internal/record"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/prior"
	"ddiff/restore"
	"ddiff/restore/operator"
	"ddiff/storage"
)

const (
	// memoryFactor is the assumed memory of an engine divided by the size of its prior's file: the network itself, and
	// the compiled solvers that the engine caches.
	memoryFactor = 4
	// defaultEngineBytes is the default of Config.Bytes.
	defaultEngineBytes int64 = 8 << 30
)

// Config describes a Cache. Fields without a stated default are required.
type Config struct {
	Runtime *onnxruntime.Runtime
	// Engine configures the engines.
	Engine restore.Config
	// Store is the store of the cluster, which holds priors.
	Store getter
	// Dir caches priors on this machine.
	Dir string
	// Bytes limits the memory of all engines together, estimated as four times the size of their priors' files. A needed
	// engine is opened even above the limit. Default: 8 GiB.
	Bytes int64
	// Logger logs which priors are fetched, opened and closed. Default: none.
	Logger *slog.Logger
}

// Validate names the first field that is missing or out of range.
func (c Config) Validate() error {
	switch {
	case c.Runtime == nil:
		return errors.New("Runtime is missing")
	case c.Store == nil:
		return errors.New("Store is missing")
	case c.Dir == "":
		return errors.New("Dir is missing")
	case c.Bytes < 0:
		return fmt.Errorf("Bytes: %d is negative", c.Bytes)
	}
	return nil
}

// Cache caches the engines of the most recently used priors. It never closes an engine in use. All methods may be
// called concurrently.
type Cache struct {
	cfg   Config
	files *storage.Cache

	// loading is held while a file is fetched and opened: one at a time, and others are released meanwhile.
	loading   sync.Mutex
	operators []*operator.File // the most recently used last

	mu   sync.Mutex
	open []*openEngine // the most recently used last
}

type openEngine struct {
	engine *restore.Engine
	sha    string
	bytes  int64
	users  int
}

// New checks the configuration and that Dir can be written.
func New(cfg Config) (*Cache, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure engines: %w", err)
	}
	cfg.Bytes = cmp.Or(cfg.Bytes, defaultEngineBytes)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	files, err := storage.NewCache(storage.CacheConfig{Dir: cfg.Dir, MaxBytes: cacheBytes, Logger: cfg.Logger})
	if err != nil {
		return nil, fmt.Errorf("cache priors in %s: %w", cfg.Dir, err)
	}
	return &Cache{cfg: cfg, files: files}, nil
}

// Acquire returns the engine of a prior, and a function that the caller must call after use. It fetches a prior that is not on this
// machine. The error is ErrPriorFile when a retry would not help.
func (c *Cache) Acquire(ctx context.Context, p record.PriorFile) (*restore.Engine, func(), error) {
	o := c.use(p.SHA256) // an open engine waits for no other file
	if o == nil {
		c.loading.Lock()
		defer c.loading.Unlock()
		if o = c.use(p.SHA256); o == nil { // opened meanwhile
			var err error
			if o, err = c.load(ctx, p); err != nil {
				return nil, nil, err
			}
		}
	}
	return o.engine, sync.OnceFunc(func() { c.release(o) }), nil
}

// use counts a user of an open engine. It returns nil if the prior has none.
func (c *Cache) use(sha string) *openEngine {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.open, func(o *openEngine) bool { return o.sha == sha })
	if i < 0 {
		return nil
	}
	o := c.open[i]
	c.open = append(slices.Delete(c.open, i, i+1), o)
	o.users++
	return o
}

// load opens an engine with one user. It closes unused engines first if memory requires it.
func (c *Cache) load(ctx context.Context, p record.PriorFile) (*openEngine, error) {
	data, err := c.readPrior(ctx, p)
	if err != nil {
		return nil, err
	}
	bytes := memoryFactor * int64(len(data))
	c.shrink(c.cfg.Bytes - bytes)
	model, err := prior.Load(cmp.Or(p.Key, prior.Bundled), data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPriorFile, err)
	}
	engine, err := restore.OpenEngine(ctx, c.cfg.Runtime, model, c.cfg.Engine, c.cfg.Logger)
	if errors.Is(err, prior.ErrGraph) || errors.Is(err, prior.ErrBundle) {
		err = fmt.Errorf("%w: %w", ErrPriorFile, err)
	}
	if err != nil {
		return nil, err
	}
	c.cfg.Logger.Info("opened prior", "prior", model.Card.Name, "sha256", model.SHA256[:12], "bytes", bytes)
	o := &openEngine{engine: engine, sha: p.SHA256, bytes: bytes, users: 1}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = append(c.open, o)
	return o, nil
}

func (c *Cache) release(o *openEngine) {
	c.mu.Lock()
	o.users--
	c.mu.Unlock()
	c.shrink(c.cfg.Bytes)
}

// shrink closes unused engines, the least recently used first, until the others fit into limit bytes.
func (c *Cache) shrink(limit int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := int64(0)
	for _, o := range c.open {
		sum += o.bytes
	}
	c.open = slices.DeleteFunc(c.open, func(o *openEngine) bool {
		if sum <= limit || o.users > 0 {
			return false
		}
		sum -= o.bytes
		c.cfg.Logger.Info("closed prior", "sha256", o.sha[:12])
		if err := o.engine.Close(); err != nil {
			c.cfg.Logger.Warn("could not close prior", "sha256", o.sha[:12], "reason", err)
		}
		return true
	})
}

// Close closes all engines, none of which may be in use.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, o := range c.open {
		errs = append(errs, o.engine.Close())
	}
	c.open = nil
	return errors.Join(errs...)
}
