package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ddiff/api"
	"ddiff/internal/cli"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/gc"
	"ddiff/internal/redact"
	"ddiff/storage"
)

// collectOptions are the flags of gc.
type collectOptions struct {
	cleanOptions
	store string
}

// NewGCCommand returns the command ddiff gc, which the help lists with those of this machine.
func NewGCCommand() *cobra.Command {
	var o collectOptions
	var keep string
	cmd := &cobra.Command{
		Use:   "gc [OUTPUT...]",
		Short: "Delete garbage, and campaigns beyond a retention time",
		Long: "Print the files that nothing needs any more, and delete them with --yes: scratch files of dead runs on this\n" +
			"machine; in each OUTPUT of ddiff run, checkpoints of restored items; and in the store of a cluster, interrupted deletions,\n" +
			"checkpoints of restored items, leftovers of preflights, and windows, logs, priors and operators without a campaign, which needs the\n" +
			"permission to delete. --keep also deletes campaigns that ended longer ago and are in the archive. Nothing of an open campaign is deleted.",
		Example: "  ddiff gc out/demo --yes\n" +
			"  ddiff gc --store s3://results --keep 90d --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			o.dryRun = !o.yes
			cfg := gc.Config{Results: o.results}
			var err error
			if cfg.Keep, err = parseAge(keep); err != nil {
				return cli.Usage(fmt.Errorf("--keep: %w", err))
			}
			switch {
			case cfg.Keep > 0 && o.store == "":
				return cli.Usage(errors.New("--keep needs the store of a cluster; give --store"))
			case cfg.Results && cfg.Keep == 0:
				return cli.Usage(errors.New("--results needs --keep; to delete one campaign: ddiff delete"))
			}
			return o.collect(cmd, args, cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&keep, "keep", "", "delete archived campaigns that ended longer ago than this `time`, such as 90d or 36h (default: keep all)")
	f.BoolVar(&o.results, "results", false, "with --keep, also delete results that no other campaign refers to")
	f.StringVar(&o.store, "store", "", "`address` of a cluster's store: also delete its garbage")
	o.add(f)
	return cmd
}

// parseAge parses a positive duration with the additional unit d, 24 hours. It is 0 for the empty text.
func parseAge(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	age, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n float64
		n, err = strconv.ParseFloat(days, 64)
		age = time.Duration(n * 24 * float64(time.Hour))
	}
	if err != nil || age <= 0 {
		return 0, fmt.Errorf("%q is not a positive time such as 90d or 36h", text)
	}
	return age, nil
}

func (o collectOptions) collect(cmd *cobra.Command, outputs []string, cfg gc.Config) error {
	ctx := cmd.Context()
	all, errs := o.collectScratch()
	for _, output := range outputs {
		removed, err := o.collectOutput(ctx, output)
		all, errs = append(all, removed...), errors.Join(errs, err)
	}
	if o.store != "" {
		removed, err := o.collectStore(ctx, cfg)
		all, errs = append(all, removed...), errors.Join(errs, err)
	}
	if err := o.print(cmd.OutOrStdout(), api.NewDeleted(all, !o.dryRun)); err != nil {
		return err
	}
	if o.dryRun && len(all) > 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "nothing was deleted; rerun with --yes to delete")
	}
	return errs
}

// collectStore collects the garbage of a cluster's store.
func (o collectOptions) collectStore(ctx context.Context, cfg gc.Config) (removed []api.Removal, err error) {
	store, err := o.open(ctx, o.store, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cli.Usage(fmt.Errorf("gc: store %s: no such directory on this machine", redact.Address(o.store)))
	}
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", redact.Address(o.store), err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	removed, err = (&gc.Cleaner{Store: store.Store, DryRun: o.dryRun}).Collect(ctx, cfg)
	if errors.Is(err, board.ErrRefused) || errors.Is(err, gc.ErrNoIndex) {
		err = cli.Usage(err)
	}
	return removed, err
}

// open opens an existing store, only for reading in a dry run. A missing directory is fs.ErrNotExist: opening it for writing would
// create it.
func (o collectOptions) open(ctx context.Context, address string, lock bool) (*storage.Opened, error) {
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

// collectOutput collects the garbage of an output of ddiff run. A process that uses the output is an error.
func (o collectOptions) collectOutput(ctx context.Context, address string) (removed []api.Removal, err error) {
	store, err := o.open(ctx, address, true)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cli.Usage(fmt.Errorf("gc: %s: no such directory", redact.Address(address)))
	}
	if err != nil {
		return nil, fmt.Errorf("open output %s: %w", redact.Address(address), err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return (&gc.Cleaner{Store: store.Store, DryRun: o.dryRun}).CollectOutput(ctx, address)
}

// collectScratch deletes the queues and windows of runs that were killed. The lock of such a directory is free.
func (o collectOptions) collectScratch() (all []api.Removal, err error) {
	for _, dir := range cli.ScratchFolders() {
		if !storage.HasLock(dir) { // it is about to be locked
			continue
		}
		removed, e := o.removeFolder(dir)
		if errors.Is(e, storage.ErrLocked) {
			continue
		}
		err = errors.Join(err, e)
		if removed.Objects > 0 {
			all = append(all, removed)
		}
	}
	return all, err
}

// removeFolder deletes a folder, with the lock of its processes. ErrLocked: a process uses it.
func (o collectOptions) removeFolder(dir string) (r api.Removal, err error) {
	lock, err := storage.AcquireLock(dir)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	r = api.Removal{Kind: "scratch", Name: dir}
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			r.Objects++
			r.Bytes += info.Size()
		}
		return err
	})
	if err == nil && !o.dryRun {
		err = os.RemoveAll(dir)
	}
	if err != nil {
		return r, fmt.Errorf("delete scratch %s: %w", dir, err)
	}
	return r, nil
}
