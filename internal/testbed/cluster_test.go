package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Bucket holds the results of a cluster, Dataset its images.
const (
	Bucket  = "results"
	Dataset = "dataset"
)

// Options describe a cluster.
type Options struct {
	// Dir holds configuration, certificates, logs, streams, buckets and caches.
	Dir string
	// Program is the ddiff binary. Default: a binary built into Dir.
	Program string
	// NATS configures the NATS servers.
	NATS NATSOptions
	// SecureS3 makes the S3 server use TLS, with an authority of its own.
	SecureS3 bool
	// Directory stores results in a directory; no S3 server starts.
	Directory bool
	// Lease, Election and Stall are the timeouts of workers, leader and queue. Defaults: 5 s, 3 s and 3 s.
	Lease, Election, Stall time.Duration
}

// Cluster is a running cluster.
type Cluster struct {
	NATS *NATS
	// S3 is nil if results go to a directory.
	S3 *S3
	// Coordinators and Workers are in the order of their addition.
	Coordinators, Workers []*Process

	o       Options
	keys    map[Role]Keys
	runtime string // environment variable
	proxy   string // of S3, see Through
	front   string // address of the HTTP API, see forward
	admin   string // access token
	mu      sync.Mutex
	served  []string // addresses of the coordinators
}

// Start starts the servers of a cluster. The caller must call Stop, also after an error.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	c := &Cluster{o: o}
	if c.o.NATS.Servers == 0 {
		c.o.NATS.Servers = 1
	}
	for d, standard := range map[*time.Duration]time.Duration{
		&c.o.Lease: 5 * time.Second, &c.o.Election: 3 * time.Second, &c.o.Stall: 3 * time.Second,
	} {
		if *d == 0 {
			*d = standard
		}
	}
	var err error
	if c.runtime, err = RuntimeVariable(); err != nil {
		return c, err
	}
	if err := os.MkdirAll(c.path("logs"), 0o755); err != nil {
		return c, fmt.Errorf("start cluster: %w", err)
	}
	if c.o.Program == "" {
		if c.o.Program, err = BuildProgram(ctx, c.o.Dir); err != nil {
			return c, err
		}
	}
	if err := c.startFront(ctx); err != nil {
		return c, err
	}
	if c.NATS, err = StartNATS(ctx, c.path("nats"), c.o.NATS); err != nil {
		return c, err
	}
	if c.o.Directory {
		return c, os.MkdirAll(c.path("store"), 0o755)
	}
	err = c.startS3(ctx)
	return c, err
}

// startS3 starts the S3 server with two buckets, and a key for each role.
func (c *Cluster) startS3(ctx context.Context) (err error) {
	if c.S3, err = StartS3(ctx, c.path("s3"), c.o.NATS.Host, c.o.SecureS3); err != nil {
		return err
	}
	for _, bucket := range []string{Bucket, Dataset} {
		if err := c.S3.Bucket(bucket); err != nil {
			return err
		}
	}
	c.keys, err = c.S3.Roles(ctx)
	return err
}

func (c *Cluster) path(name string) string { return filepath.Join(c.o.Dir, name) }

// Stop ends all processes. It is idempotent.
func (c *Cluster) Stop() {
	c.mu.Lock()
	all := slices.Concat(c.Workers, c.Coordinators)
	c.mu.Unlock()
	for _, p := range all {
		p.Kill()
	}
	if c.S3 != nil {
		c.S3.Server.Kill()
	}
	if c.NATS != nil {
		c.NATS.Kill()
	}
}

// Through makes programs that start afterwards reach S3 through the address of a proxy.
func (c *Cluster) Through(proxy string) { c.proxy = proxy }

// Store returns the address of the results' store for --store.
func (c *Cluster) Store() string {
	if c.o.Directory {
		return c.path("store")
	}
	return c.S3.Store(Bucket, c.proxy)
}

// Images returns the address of the dataset's bucket for campaigns.
func (c *Cluster) Images() string { return c.S3.Store(Dataset, c.proxy) }

// Results returns the directory of an output.
func (c *Cluster) Results(output string) string {
	if c.o.Directory {
		return filepath.Join(c.path("store"), output)
	}
	return filepath.Join(c.S3.Root, Bucket, output)
}

// Role determines the permissions of a program.
type Role string

// The roles.
const (
	RoleCoordinator Role = "coordinator"
	RoleWorker      Role = "worker"
	RoleUser        Role = "user" // a person, with the administrator's token and the keys of the store, and no access to NATS
)

// Environment returns the environment of a program in a role with its own cache directory.
func (c *Cluster) Environment(role Role, cache string) []string {
	env := []string{c.runtime, "XDG_CACHE_HOME=" + cache}
	if role == RoleUser {
		env = append(env, "DDIFF_SERVER=http://"+c.front, "DDIFF_TOKEN="+c.admin)
	} else {
		env = append(env, c.NATS.Environment(role)...)
	}
	if c.S3 != nil {
		env = append(env, c.keys[role].Environment()...)
		if c.S3.Authority != nil {
			env = append(env, "AWS_CA_BUNDLE="+c.S3.Authority.File, "DDIFF_S3_CERT="+c.S3.Client.Cert, "DDIFF_S3_KEY="+c.S3.Client.Key)
		}
	}
	return env
}

// processEnvironment returns the environment of a process, with S3 keys of its own if it has any.
func (c *Cluster) processEnvironment(role Role, name string) []string {
	env := c.Environment(role, c.Cache(name))
	if own, ok := c.keys[Role(name)]; ok {
		env = append(env, own.Environment()...)
	}
	return env
}

// AddCoordinator starts another coordinator and waits until it is ready.
func (c *Cluster) AddCoordinator(ctx context.Context, args ...string) (*Process, error) {
	p := c.NewCoordinator(args...)
	if err := p.Start(); err != nil {
		return p, err
	}
	err := p.WaitLog(ctx, "coordinator is ready")
	return p, err
}

// NewCoordinator describes another coordinator; the caller starts it.
func (c *Cluster) NewCoordinator(args ...string) *Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := fmt.Sprintf("coordinator-%d", len(c.Coordinators)+1)
	replicas := 1
	if c.o.NATS.Servers >= 3 {
		replicas = 3
	}
	at := argument(args, "--listen")
	if at == "" {
		at, _ = FreeAddress(context.Background()) // the coordinator says if it is none
		args = append(args, "--listen", at)
	}
	c.served = append(c.served, at)
	all := append([]string{
		"coordinator", "--admin-token", c.path("admin"), "--name", name, "--store", c.Store(), "--replicas", strconv.Itoa(replicas),
		"--ack-wait", c.o.Lease.String(), "--election", c.o.Election.String(), "--stall", c.o.Stall.String(), "--settle", "0s",
	}, args...)
	p := NewProcess(c.path("logs"), name, c.processEnvironment(RoleCoordinator, name), c.o.Program, all...)
	c.Coordinators = append(c.Coordinators, p)
	return p
}

// AddWorker starts another worker of one thread and waits until it is ready.
func (c *Cluster) AddWorker(ctx context.Context, args ...string) (*Process, error) {
	p := c.NewWorker(args...)
	if err := p.Start(); err != nil {
		return p, err
	}
	err := p.WaitLog(ctx, "worker is ready")
	return p, err
}

// NewWorker describes another worker; the caller starts it.
func (c *Cluster) NewWorker(args ...string) *Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := fmt.Sprintf("worker-%d", len(c.Workers)+1)
	all := append([]string{"worker", "--name", name, "--threads", "1", "--device", "cpu"}, args...)
	p := NewProcess(c.path("logs"), name, c.processEnvironment(RoleWorker, name), c.o.Program, all...)
	c.Workers = append(c.Workers, p)
	return p
}

// Cache returns the cache directory of a process.
func (c *Cluster) Cache(name string) string { return filepath.Join(c.o.Dir, "cache", name) }

// Command prepares the program with arguments for a person.
func (c *Cluster) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.o.Program, args...)
	cmd.Env = append(Environment(), c.Environment(RoleUser, c.Cache("user"))...)
	return cmd
}

// codeUnavailable is the exit code of a command that no coordinator answers, and patience the time for which Output repeats it.
const (
	codeUnavailable = 9
	patience        = time.Minute
)

// Output runs a command to its end and returns its standard output, again while no coordinator answers. The error of a failed
// command contains its standard error.
func (c *Cluster) Output(ctx context.Context, args ...string) (string, error) {
	var exit *exec.ExitError
	out, err := c.Command(ctx, args...).Output()
	for end := time.Now().Add(patience); errors.As(err, &exit) && exit.ExitCode() == codeUnavailable && ctx.Err() == nil && time.Now().Before(end); {
		sleep(ctx, 500*time.Millisecond)
		out, err = c.Command(ctx, args...).Output()
	}
	if errors.As(err, &exit) {
		err = fmt.Errorf("ddiff %s: %w: %s", args[0], err, tail(string(exit.Stderr)))
	}
	return string(out), err
}
