// Package enginecache opens the priors and operator files of campaigns on a worker's machine. It owns their copies on the local disk,
// which several processes may share, and the memory of their engines. A file that another kind of campaign needs gets a method beside
// [Cache.Fetch] and a kind of priorFiles.
package enginecache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"ddiff/internal/lifecycle"
	"ddiff/manifest"
	"ddiff/restore"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/operator"
	"ddiff/restore/prior"
)

const (
	// memoryFactor is the assumed memory of an engine divided by the size of its prior's file: the network itself, and
	// the compiled solvers that the engine caches.
	memoryFactor = 4
	// defaultEngineBytes is the default of Config.Bytes.
	defaultEngineBytes int64 = 8 << 30
	// fetchPause is the pause after a failed fetch of a prior.
	fetchPause = 15 * time.Second
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
	cfg           Config
	files         priorFiles
	operatorFiles priorFiles

	mu        sync.Mutex
	fetches   map[string]*fetch // by digest and key
	open      []*openEngine     // the most recently used last
	operators []*operator.File  // the most recently used last
}

// fetch copies a prior to the local disk in the background.
type fetch struct {
	*lifecycle.Service
	ended time.Time // valid when Done is closed
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
	c := &Cache{cfg: cfg, fetches: map[string]*fetch{}}
	c.files = priorFiles{cfg.Dir, cfg.Store, "prior", ErrPriorFile}
	c.operatorFiles = priorFiles{cfg.Dir, cfg.Store, "operator", ErrOperatorFile}
	if err := c.files.checkWritable(); err != nil {
		return nil, fmt.Errorf("cache priors in %s: %w", cfg.Dir, err)
	}
	return c, nil
}

// Fetch starts to fetch a prior in the background, unless that has happened, and reports whether the prior is on this
// machine. It returns the error of a failed fetch, and retries after a pause. The error is ErrPriorFile when a retry
// would not help.
func (c *Cache) Fetch(p manifest.PriorFile) (ready bool, err error) { return c.fetch(c.files, p) }

func (c *Cache) fetch(files priorFiles, p manifest.PriorFile) (ready bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := files.kind + " " + p.SHA256 + " " + p.Key
	if f := c.fetches[key]; f != nil {
		select {
		case <-f.Done():
		default:
			return false, nil
		}
		if err := f.Err(); err == nil || time.Since(f.ended) < fetchPause {
			return err == nil, err
		}
	}
	f := &fetch{}
	c.fetches[key] = f
	f.Service = lifecycle.Go(context.Background(), func(ctx context.Context) error {
		_, err := files.read(ctx, p)
		f.ended = time.Now()
		if err == nil && p.Key != "" {
			c.cfg.Logger.Info("fetched "+files.kind, files.kind, p.Name, "file", files.file(p.SHA256))
		}
		return err
	})
	return false, nil
}

// Acquire returns the engine of a prior, and a function that the caller must call after use.
func (c *Cache) Acquire(ctx context.Context, p manifest.PriorFile) (*restore.Engine, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.open, func(o *openEngine) bool { return o.sha == p.SHA256 })
	if i < 0 {
		o, err := c.load(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		i = len(c.open)
		c.open = append(c.open, o)
	}
	o := c.open[i]
	c.open = append(slices.Delete(c.open, i, i+1), o)
	o.users++
	return o.engine, sync.OnceFunc(func() { c.release(o) }), nil
}

// load opens an engine. It closes unused engines first if memory requires it.
func (c *Cache) load(ctx context.Context, p manifest.PriorFile) (*openEngine, error) {
	data, err := c.files.read(ctx, p)
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
	return &openEngine{engine: engine, sha: p.SHA256, bytes: bytes}, nil
}

func (c *Cache) release(o *openEngine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o.users--
	c.shrink(c.cfg.Bytes)
}

// shrink closes unused engines, the least recently used first, until the others fit into limit bytes.
func (c *Cache) shrink(limit int64) {
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

// Close stops background fetches and closes all engines, none of which may be in use.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.fetches {
		f.Stop()
	}
	var errs []error
	for _, o := range c.open {
		errs = append(errs, o.engine.Close())
	}
	c.open = nil
	return errors.Join(errs...)
}
