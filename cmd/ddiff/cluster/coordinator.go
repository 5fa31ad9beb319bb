package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace/noop"

	"ddiff/coordinator"
	"ddiff/internal/cli"
	"ddiff/internal/cli/catalogue"
	"ddiff/internal/cli/localpage"
	"ddiff/internal/coordinator/serve"
	"ddiff/internal/coordinator/serve/cluster"
	"ddiff/internal/lifecycle"
	"ddiff/internal/queue"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
	"ddiff/telemetry"
)

// coordinatorGC is the garbage that a coordinator may hold, in percent of its live memory: the garbage of many submitted
// campaigns would otherwise stay for minutes, because a waiting coordinator allocates little.
const coordinatorGC = 50

// coordinatorOptions are the flags of coordinator.
type coordinatorOptions struct {
	catalogue manifest.Catalogue
	nats      natsFlags
	store     string
	takeOver  string
	name      string
	replicas  int
	ackWait   time.Duration
	election  time.Duration
	stall     time.Duration

	maxResults int64
	campaigns  int
	archive    time.Duration
	settle     time.Duration
	pools      []string
	notify     notifyFlags
	prices     []string
	caps       []string
	sources    cli.SourceFlags
	process    cli.ProcessFlags
	listen     listenFlags
	api        apiFlags
}

func newCoordinatorCommand(c manifest.Catalogue) *cobra.Command {
	o := coordinatorOptions{catalogue: c}
	cmd := &cobra.Command{
		Use:   "coordinator",
		Short: "Run the campaigns of a cluster",
		Long: "Divide submitted campaigns into work items, publish them, record their outcomes and write the\n" +
			"reports, until a signal stops the process. Several coordinators may run at the same time: one leads, and another\n" +
			"takes over when the leader dies. Each serves the page and the HTTP API at --listen, by which people command it.",
		Example: "  ddiff coordinator --nats nats://127.0.0.1:4222 --store s3://results",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.api.byDefault = !cmd.Flags().Changed("listen")
			return runCoordinator(cmd.Context(), o, cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	o.nats.role = "coordinator"
	o.nats.add(cmd)
	o.sources.Add(f)
	o.process.Add(f, "info")
	o.listen.add(f)
	o.api.add(f)
	o.notify.add(f)
	f.StringSliceVar(&o.prices, "price", nil, "`prices` of a device-second in your currency, for the cost of campaigns: PRICE, or POOL=PRICE of a pool; with /h of a device-hour")
	f.StringSliceVar(&o.caps, "cap", nil, "`costs` that the campaigns of an owner may have in a month: OWNER=COST, *=COST of each other owner")
	f.StringVar(&o.store, "store", "", "`address` of the results: s3://bucket/prefix?endpoint=URL, or a directory that all machines share")
	f.StringVar(&o.takeOver, "take-over-store", "", "name of the `cluster` from which this one takes the store over for good: after a loss of all data of NATS, or with a copy of a bucket")
	f.StringVar(&o.name, "name", "", "`name` of this coordinator (default: host and process id)")
	f.IntVar(&o.replicas, "replicas", 1, "`number` of NATS servers that store each message, 1 to 5")
	f.DurationVar(&o.ackWait, "ack-wait", time.Minute, "lease of an item: after this `time` without an extension, another worker takes it")
	f.DurationVar(&o.election, "election", 10*time.Second, "after this `time` without a renewal, another coordinator leads")
	f.DurationVar(&o.stall, "stall", 15*time.Second, "after this `time` with too few items in the queue, compare it with storage")
	f.DurationVar(&o.settle, "settle", 5*time.Second, "look a second time, after this `time`, at a file of a dataset that was modified within it: it may still be written (0: once)")
	f.DurationVar(&o.archive, "archive-after", time.Hour, "after this `time` since its end, a campaign moves from the board to the archive")
	f.Int64Var(&o.maxResults, "max-results", 0, "largest `number` of outcomes in the queue (default 10 million, below 0: no limit)")
	f.IntVar(&o.campaigns, "max-campaigns", coordinator.DefaultCampaigns, "largest `number` of campaigns that an owner of tokens has before they are archived")
	f.StringSliceVar(&o.pools, "pools", []string{manifest.DefaultPool}, "`names` of pools whose workers a scaler starts: ddiff.queue.lag has them also without workers")
	return cmd
}

func processName(given string) string {
	if given != "" {
		return given
	}
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// logEnd logs the end of a process without an error. The caller of the command reports an error.
func logEnd(log *slog.Logger, err error) {
	if err == nil {
		log.Info("ended", "exit_code", cli.ExitDone)
	}
}

// runCoordinator wires a coordinator and runs it until ctx ends.
func runCoordinator(ctx context.Context, o coordinatorOptions, stderr io.Writer) (err error) {
	if o.store == "" {
		return cli.Usage(errors.New("--store is missing; give --store s3://bucket/prefix, or a directory that all machines share"))
	}
	for flag, d := range map[string]time.Duration{"--archive-after": o.archive, "--ack-wait": o.ackWait, "--stall": o.stall} {
		if d < time.Second {
			return cli.Usage(fmt.Errorf("%s: %v is below 1s", flag, d))
		}
	}
	if o.campaigns < 1 {
		return cli.Usage(fmt.Errorf("--max-campaigns: %d is below 1", o.campaigns))
	}
	if err := o.api.check(); err != nil {
		return err
	}
	key, err := o.notify.key()
	if err != nil {
		return err
	}
	prices, caps, err := o.money()
	if err != nil {
		return err
	}
	for _, pool := range o.pools {
		if err := manifest.CheckPool(pool); err != nil {
			return cli.Usage(fmt.Errorf("--pools: %w", err))
		}
	}
	// Workers on this machine open the store by the same address.
	if o.store, err = storage.Absolute(o.store); err != nil {
		return cli.Usage(fmt.Errorf("--store: %w", err))
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(coordinatorGC)
	}
	o.process.Prometheus = o.listen.metrics != ""
	tel, stop, err := o.process.Telemetry(ctx, cli.Service+"-coordinator", stderr)
	if err != nil {
		return err
	}
	defer func() {
		stop()
		logEnd(tel.Logger, err)
	}()
	name := processName(o.name)
	tel.Logger = tel.Logger.With("coordinator", name)
	probes := newProbes("opening the store")
	stopListening, err := o.listen.serve(ctx, probes, tel)
	if err != nil {
		return err
	}
	defer stopListening()
	sources, err := o.sources.Open(o.store, tel.Logger)
	if err != nil {
		return err
	}
	defer sources.Close()
	models, err := o.sources.OpenModels(o.store, tel.Logger)
	if err != nil {
		return err
	}
	defer models.Close()
	store, err := cli.OpenClusterStore(ctx, o.store, tel.Logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	probes.started.set(passed)
	probes.ready.set(func() error { return errors.New("waiting for NATS") })
	nc, err := o.nats.connect(ctx, name, tel.Logger)
	if err != nil {
		return err
	}
	defer nc.Close()

	setup := queue.SetupConfig{
		Replicas: o.replicas, UnsyncedWork: o.replicas == 1, MaxResults: o.maxResults, Logger: tel.Logger,
	}
	if err := queue.Setup(ctx, nc, setup); err != nil {
		return err
	}
	board, err := queue.OpenBoard(ctx, nc, nil)
	if err != nil {
		return err
	}
	metrics, err := telemetry.NewCluster(tel.Meter(cli.Service))
	if err != nil {
		return err
	}
	transfer, err := telemetry.NewTransfer(tel.Meter(cli.Service))
	if err != nil {
		return err
	}
	sources.Transfer = transfer
	// Spans for each object would be as many as a campaign has items.
	metered := storage.NewTraced(store.Store, noop.NewTracerProvider().Tracer(""), transfer, "")
	inspect := func(campaign string) (*queue.Queue, error) {
		return queue.Inspect(nc, queue.Config{Campaign: campaign})
	}
	usage := func(ctx context.Context) ([]queue.StreamUsage, error) { return queue.Usage(ctx, nc) }
	service, err := coordinator.New(coordinator.Config{
		Name: name, Board: board, Store: metered, StoreAddress: o.store, TakeOver: o.takeOver, Sources: sources, Models: models, Rows: sources.Rows,
		AckWait: o.ackWait, Stall: o.stall, Catalogue: o.catalogue,
		Open: func(ctx context.Context, campaign string, attempts int) (*queue.Queue, error) {
			return queue.Open(ctx, nc, queue.Config{
				Campaign: campaign, AckWait: o.ackWait, MaxAttempts: attempts, Replicas: o.replicas,
				Logger: tel.Logger, Tracer: tel.Tracer("queue"),
			})
		},
		ArchiveAfter: o.archive, Settle: o.settle, Campaigns: o.campaigns, Pools: o.pools, Prices: prices, Caps: caps, Notifier: o.notify.open(board, metered, key, tel.Logger),
		Inspect: inspect, Usage: usage,
		Sweep: func(ctx context.Context) error {
			return queue.Sweep(ctx, nc, queue.SweepConfig{Logger: tel.Logger, Outcome: deadOutcome})
		},
		Logger: tel.Logger, Tracer: tel.Tracer("coordinator"), Metrics: metrics,
	})
	if err != nil {
		return err
	}
	election, err := queue.NewElection(ctx, nc, queue.ElectionConfig{Name: name, TTL: o.election, Fit: service.Fit, Logger: tel.Logger})
	if err != nil {
		return err
	}
	defer lifecycle.Go(ctx, service.CheckHealth).Stop()
	stopAPI, err := o.serveAPI(ctx, cluster.Config{
		Board: board, Store: metered, StoreAddress: o.store, Catalogue: o.catalogue, Rows: sources.Rows, Name: name, Version: cli.Version(),
		Inspect: inspect, Usage: usage,
		Server: nc.ConnectedUrlRedacted, Logger: tel.Logger,
	}, probes, stderr)
	if err != nil {
		return err
	}
	defer stopAPI()
	probes.ready.set(func() error {
		if !nc.IsConnected() {
			return errors.New("not connected to NATS")
		}
		return service.Ready()
	})
	tel.Logger.Info("coordinator is ready", "name", name, "store", o.store)
	for {
		err := election.Run(ctx, service.Lead)
		if !errors.Is(err, queue.ErrNotReady) || ctx.Err() != nil {
			return err
		}
		tel.Logger.Error("the queue was lost; creating it again, and restoring the campaigns from the store", "reason", err)
		if err := queue.Setup(ctx, nc, setup); err != nil {
			return err
		}
	}
}

// serveAPI serves the HTTP API until stop is called, unless --listen is off. Without --listen it only warns if it cannot: another coordinator may run
// on this machine. Where people need tokens it fails: another user who has the port would get them.
func (o coordinatorOptions) serveAPI(ctx context.Context, cfg cluster.Config, p *probes, stderr io.Writer) (stop func(), err error) {
	if o.api.address == listenOff {
		return func() {}, nil
	}
	stop, err = o.startAPI(ctx, cfg, p, stderr)
	if err == nil || !o.api.byDefault || o.api.requireTokens {
		return stop, err
	}
	cfg.Logger.Warn("this coordinator serves no page and no HTTP API; give --listen HOST:PORT, or --listen "+listenOff, "address", o.api.address, "reason", err)
	return func() {}, nil
}

func (o coordinatorOptions) startAPI(ctx context.Context, cfg cluster.Config, p *probes, stderr io.Writer) (stop func(), err error) {
	all, _, err := catalogue.Tasks(o.catalogue)
	if err != nil {
		return nil, err
	}
	tasks, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	methods, err := json.Marshal(catalogue.Methods(o.catalogue.Methods))
	if err != nil {
		return nil, err
	}
	c := cluster.New(cfg)
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	server := serve.Config{
		Backend: c, Controller: c, Kind: "cluster", PublicURL: o.api.publicURL, Tasks: tasks, Methods: methods, Version: cfg.Version, Logger: cfg.Logger,
		Health: map[string]func() error{"/startupz": p.started.test, "/readyz": p.ready.test, "/livez": p.live.test},
	}
	if !o.api.requireTokens {
		server.Secret = rand.Text()
		if _, err := localpage.Folder(); err != nil {
			return nil, cli.Usage(fmt.Errorf("--listen: there is no folder for its token: %w; give --require-tokens", err))
		}
	}
	if err := o.api.admit(ctx, c, &server); err != nil {
		return nil, err
	}
	s, err := serve.New(server)
	if err != nil {
		return nil, err
	}
	begun := make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	l, err := listen(ctx, "--listen", o.api.address, func(ctx context.Context, l net.Listener) error {
		defer begin()
		if server.Secret != "" {
			path, remove, err := localpage.Store(l, server.Secret)
			if err != nil {
				cfg.Logger.Error("cannot store the token of --listen; give --require-tokens", "reason", err)
				return err
			}
			defer remove()
			cfg.Logger.Info("only its user may use the HTTP API", "token_file", path)
			if cli.TerminalWidth(stderr) > 0 { // a log may have other readers
				scheme := "http"
				if o.api.tls.Cert != "" {
					scheme = "https"
				}
				fmt.Fprintf(stderr, "page: %s\n", localpage.Address(scheme, l, server.Secret))
			}
		}
		begin()
		err := s.Serve(ctx, l, o.api.tls)
		if ctx.Err() == nil {
			cfg.Logger.Error("the HTTP API has ended", "reason", err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	<-begun // commands of this user find the token
	if o.api.requireTokens && o.api.tls.Cert == "" && !serve.Local(o.api.address) {
		cfg.Logger.Warn("the API is served without encryption: tokens can be read on the network; give --tls-cert, or put a proxy with TLS before it")
	}
	cfg.Logger.Info("serving the HTTP API", "address", o.api.address, "tokens", o.api.requireTokens)
	return func() { l.Stop(); c.Close() }, nil
}

// deadOutcome is the result event of an item that ended all its workers.
func deadOutcome() ([]byte, error) {
	return json.Marshal(item.Event{
		Outcome: item.OutcomeDead, Reason: "every worker that leased the item crashed or hung", Finished: time.Now().UTC().Truncate(time.Millisecond),
	})
}
