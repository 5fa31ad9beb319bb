package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"ddiff/coordinator/board"
	"ddiff/coordinator/gc"
	"ddiff/coordinator/report/table"
	"ddiff/internal/cli"
	"ddiff/internal/redact"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// cleanOptions are the flags of delete and gc.
type cleanOptions struct {
	nats    natsFlags
	store   string
	results bool
	yes     bool
	dryRun  bool
	json    bool
}

func (o *cleanOptions) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVarP(&o.yes, "yes", "y", false, "delete without a question")
	f.BoolVar(&o.dryRun, "dry-run", false, "print what would be deleted")
	f.StringVar(&o.store, "store", "", "`address` of the cluster's store (default: the address that the coordinator published)")
	f.BoolVar(&o.json, "json", false, "print a JSON object")
	o.nats.add(cmd)
}

func (o *cleanOptions) check() error {
	if o.yes && o.dryRun {
		return cli.Usage(errors.New("--yes and --dry-run exclude each other; give one of them"))
	}
	return nil
}

func newDeleteCommand() *cobra.Command {
	var o cleanOptions
	cmd := &cobra.Command{
		Use:   "delete CAMPAIGN",
		Short: "Delete a campaign that has ended",
		Long: "Delete a campaign that has ended: its records, windows, checkpoints and report, and with --results also the\n" +
			"results that no other campaign with the same output refers to. This machine needs access to the store with the\n" +
			"permission to delete. After an interruption, the same command or ddiff gc completes the deletion.",
		Example: "  ddiff delete night-photos-5f0c11d2 --results",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			cmd.SetContext(asUser(cmd.Context()))
			return o.withCleaner(cmd.Context(), func(c *gc.Cleaner) error { return o.delete(cmd, c, args[0]) })
		},
	}
	cmd.Flags().BoolVar(&o.results, "results", false, "also delete results that no other campaign refers to")
	o.add(cmd)
	return cmd
}

func (o cleanOptions) delete(cmd *cobra.Command, c *gc.Cleaner, id string) error {
	run := func(dry bool) ([]gc.Removal, error) {
		c.DryRun = dry
		removed, err := c.Delete(cmd.Context(), id, o.results)
		if errors.Is(err, board.ErrRefused) || errors.Is(err, gc.ErrNoIndex) {
			return removed, cli.Usage(err)
		}
		if errors.Is(err, queue.ErrNoRecord) {
			return removed, cli.Usage(fmt.Errorf("unknown campaign %s; see: ddiff list --all", id))
		}
		return removed, err
	}
	if !o.yes {
		planned, err := run(true)
		if err != nil {
			return err
		}
		if o.dryRun {
			return o.print(cmd.OutOrStdout(), planned, false)
		}
		if err := writeRemovals(cmd.ErrOrStderr(), planned); err != nil {
			return err
		}
		if err := confirm(cmd, "Delete campaign "+id); err != nil {
			return err
		}
	}
	removed, err := run(false)
	if err != nil && len(removed) == 0 {
		return err // refused
	}
	return errors.Join(o.print(cmd.OutOrStdout(), removed, true), err)
}

// confirm asks a question on standard error. Any answer but y or yes is a usage error.
func confirm(cmd *cobra.Command, question string) error {
	fmt.Fprintf(cmd.ErrOrStderr(), "%s? [y/N] ", question)
	answer, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return cli.Usage(fmt.Errorf("%s: not confirmed, nothing was deleted; answer y, or give --yes", cmd.Name()))
}

// print prints what was deleted, or would be.
func (o cleanOptions) print(out io.Writer, all []gc.Removal, deleted bool) error {
	objects, bytes := 0, int64(0)
	for _, r := range all {
		objects += r.Objects
		bytes += r.Bytes
	}
	if o.json {
		if all == nil {
			all = []gc.Removal{}
		}
		return json.NewEncoder(out).Encode(map[string]any{"removals": all, "objects": objects, "bytes": bytes, "deleted": deleted})
	}
	if err := writeRemovals(out, all); err != nil {
		return err
	}
	word := "no"
	if deleted {
		word = "yes"
	}
	_, err := fmt.Fprintf(out, "objects=%d bytes=%d deleted=%s\n", objects, bytes, word)
	return err
}

func writeRemovals(out io.Writer, all []gc.Removal) error {
	if len(all) == 0 {
		return nil
	}
	t := table.NewWriter(out)
	fmt.Fprintln(t, "KIND\tOF\tOBJECTS\tBYTES")
	for _, r := range cli.Clean(all) {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\n", r.Kind, r.Name, r.Objects, r.Bytes)
	}
	return t.Flush()
}

func (o cleanOptions) hasCluster() bool {
	return o.store != "" || o.nats.url != "" || os.Getenv(envNATSURL) != ""
}

// withCleaner calls use with a cleaner for the cluster's store: of --store, or of the address on the board. Without NATS
// servers the cleaner has no board.
func (o cleanOptions) withCleaner(ctx context.Context, use func(c *gc.Cleaner) error) error {
	if o.store != "" && o.nats.url == "" && os.Getenv(envNATSURL) == "" {
		return o.withStore(ctx, o.store, nil, use)
	}
	return o.nats.withBoard(ctx, func(b *queue.Board) error {
		address := o.store
		if address == "" {
			data, _, err := b.Get(ctx, manifest.KeyCluster)
			if errors.Is(err, queue.ErrNoRecord) {
				return cli.Usage(errors.New("no coordinator has published the address of its store; give --store"))
			}
			var cluster manifest.Cluster
			if err == nil {
				cluster, err = manifest.DecodeCluster(data)
			}
			if err != nil {
				return fmt.Errorf("read the address of the store: %w", err)
			}
			address = cluster.Store
		}
		return o.withStore(ctx, address, b, use)
	})
}

func (o cleanOptions) withStore(ctx context.Context, address string, b *queue.Board, use func(c *gc.Cleaner) error) (err error) {
	store, err := o.open(ctx, address, false)
	if errors.Is(err, fs.ErrNotExist) {
		return cli.Usage(fmt.Errorf("store %s: no such directory on this machine; give its address here with --store", redact.Address(address)))
	}
	if err != nil {
		return fmt.Errorf("open store %s: %w", redact.Address(address), err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if b != nil {
		if err := board.CheckStore(ctx, b, store.Store); err != nil {
			return err
		}
	}
	return use(&gc.Cleaner{Store: store.Store, Board: b})
}

// open opens an existing store, only for reading in a dry run. A missing directory is fs.ErrNotExist: opening it for writing would
// create it.
func (o cleanOptions) open(ctx context.Context, address string, lock bool) (*storage.Opened, error) {
	options := storage.Options{ReadOnly: true, Logger: slog.New(slog.DiscardHandler)}
	store, err := storage.Open(ctx, address, options)
	if err != nil || o.dryRun {
		return store, err
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	options.ReadOnly, options.Lock = false, lock
	return storage.Open(ctx, address, options)
}
