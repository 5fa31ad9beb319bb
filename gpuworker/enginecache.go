package gpuworker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"ddiff/manifest"
	"ddiff/restore"
	"ddiff/restore/onnx"
	"ddiff/restore/prior"
)

const (
	// memoryFactor is what an engine is counted to need, in sizes of its prior's file: one
	// for the network as it was read, and one for each of the compiled solvers that it keeps.
	memoryFactor = 4
	// DefaultEngineBytes is the memory of all engines together when nothing is said: 8 GiB.
	DefaultEngineBytes int64 = 8 << 30
	// fetchAgain is the pause after a prior could not be fetched.
	fetchAgain = 15 * time.Second
)

// EngineCacheConfig describes an EngineCache. Fields without a stated default are required.
type EngineCacheConfig struct {
	// Runtime computes.
	Runtime *onnx.Runtime
	// Engine configures the engines.
	Engine restore.Config
	// Store is the store of the cluster, where priors lie.
	Store getter
	// Dir is where priors are kept on this machine.
	Dir string
	// Bytes is the memory that engines may need together, counted as four times the size of
	// their priors' files. Default: DefaultEngineBytes. The engine that is needed is opened
	// even if it is larger.
	Bytes int64
	// Logger is told of priors that are fetched and dropped. Default: nothing is logged.
	Logger *slog.Logger
}

// Validate names the first field that is missing or out of range.
func (c EngineCacheConfig) Validate() error {
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

// EngineCache keeps an engine for each of the priors that were used last. One that is in use
// is never closed. All methods may be called concurrently.
type EngineCache struct {
	cfg   EngineCacheConfig
	files priorFiles
	ctx   context.Context // of what fetches in the background
	stop  context.CancelFunc
	group sync.WaitGroup

	mu      sync.Mutex
	fetches map[string]*fetching // by digest
	open    []*openEngine        // the most recently used last
}

// fetching is the state of a prior on its way to the disk.
type fetching struct {
	ready bool
	err   error
	again time.Time // when to try once more, after an error
}

// openEngine is an engine in memory.
type openEngine struct {
	engine *restore.Engine
	sha    string
	bytes  int64
	users  int
}

// NewEngineCache checks the configuration and that Dir can be written.
func NewEngineCache(cfg EngineCacheConfig) (*EngineCache, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure engines: %w", err)
	}
	if cfg.Bytes == 0 {
		cfg.Bytes = DefaultEngineBytes
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c := &EngineCache{cfg: cfg, files: priorFiles{cfg.Dir, cfg.Store}, fetches: map[string]*fetching{}}
	if err := c.files.writable(); err != nil {
		return nil, fmt.Errorf("keep priors in %s: %w", cfg.Dir, err)
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c, nil
}

// Dir is where priors are kept on this machine.
func (c *EngineCache) Dir() string { return c.cfg.Dir }

// Fetch begins to fetch a prior if it was not fetched yet, and tells whether it is ready. An
// error stays for a while, before the prior is fetched again; it is ErrPriorFile when that
// would not help.
func (c *EngineCache) Fetch(p manifest.PriorFile) (ready bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := p.SHA256 + " " + p.Key
	if f := c.fetches[key]; f != nil && (f.err == nil || time.Now().Before(f.again)) {
		return f.ready, f.err
	}
	f := &fetching{}
	c.fetches[key] = f
	c.group.Go(func() {
		_, err := c.files.read(c.ctx, p)
		c.mu.Lock()
		defer c.mu.Unlock()
		f.ready, f.err, f.again = err == nil, err, time.Now().Add(fetchAgain)
		if err == nil && p.Key != "" {
			c.cfg.Logger.Info("the prior is on this machine", "prior", p.Name, "file", c.files.file(p.SHA256))
		}
	})
	return false, nil
}

// Acquire gives the engine of a prior, and what is to be called when it is not used any more.
func (c *EngineCache) Acquire(ctx context.Context, p manifest.PriorFile) (*restore.Engine, func(), error) {
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

// load opens an engine, after making room.
func (c *EngineCache) load(ctx context.Context, p manifest.PriorFile) (*openEngine, error) {
	data, err := c.files.read(ctx, p)
	if err != nil {
		return nil, err
	}
	name := p.Key
	if name == "" {
		name = prior.Bundled
	}
	bytes := memoryFactor * int64(len(data))
	c.shrink(c.cfg.Bytes - bytes)
	model, err := prior.Load(name, data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPriorFile, err)
	}
	c.cfg.Logger.Info("opened a prior", "prior", model.Card.Name, "sha256", model.SHA256[:12], "bytes", bytes)
	return &openEngine{engine: restore.NewEngine(c.cfg.Runtime, model, c.cfg.Engine), sha: p.SHA256, bytes: bytes}, nil
}

func (c *EngineCache) release(o *openEngine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o.users--
	c.shrink(c.cfg.Bytes)
}

// shrink closes engines that nobody uses, the least recently used first, until the others
// need no more than limit.
func (c *EngineCache) shrink(limit int64) {
	sum := int64(0)
	for _, o := range c.open {
		sum += o.bytes
	}
	c.open = slices.DeleteFunc(c.open, func(o *openEngine) bool {
		if sum <= limit || o.users > 0 {
			return false
		}
		sum -= o.bytes
		c.cfg.Logger.Info("closed a prior", "sha256", o.sha[:12])
		if err := o.engine.Close(); err != nil {
			c.cfg.Logger.Warn("could not close a prior", "sha256", o.sha[:12], "reason", err)
		}
		return true
	})
}

// Close stops fetching and closes all engines. None may be in use.
func (c *EngineCache) Close() error {
	c.stop()
	c.group.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, o := range c.open {
		errs = append(errs, o.engine.Close())
	}
	c.open = nil
	return errors.Join(errs...)
}
