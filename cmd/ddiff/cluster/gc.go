package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ddiff/coordinator/board"
	"ddiff/coordinator/gc"
	"ddiff/internal/cli"
	"ddiff/internal/redact"
	"ddiff/storage"
)

// NewGCCommand returns the command ddiff gc, which the help lists with those of this machine.
func NewGCCommand() *cobra.Command {
	var o cleanOptions
	var keep string
	cmd := &cobra.Command{
		Use:   "gc [OUTPUT...]",
		Short: "Delete garbage, and campaigns beyond a retention time",
		Long: "Print the files that nothing needs any more, and delete them with --yes: scratch files of dead runs on this\n" +
			"machine; in each OUTPUT of ddiff run, checkpoints of restored items; and if --nats, $DDIFF_NATS_URL or --store name a cluster, interrupted deletions,\n" +
			"checkpoints of restored items, leftovers of preflights, and windows, logs, priors and operators without a campaign.\n" +
			"--keep also deletes campaigns that ended longer ago and are in the archive. Nothing of an open campaign is deleted.",
		Example: "  ddiff gc out/demo --yes\n" +
			"  ddiff gc --nats nats://127.0.0.1:4222 --keep 90d --yes",
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
			case cfg.Keep > 0 && !o.hasCluster():
				return cli.Usage(errors.New("--keep needs a cluster; give --nats or --store"))
			case cfg.Results && cfg.Keep == 0:
				return cli.Usage(errors.New("--results needs --keep; to delete one campaign: ddiff delete"))
			}
			return o.collect(cmd, args, cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&keep, "keep", "", "delete archived campaigns that ended longer ago than this `time`, such as 90d or 36h (default: keep all)")
	f.BoolVar(&o.results, "results", false, "with --keep, also delete results that no other campaign refers to")
	o.add(cmd)
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

func (o cleanOptions) collect(cmd *cobra.Command, outputs []string, cfg gc.Config) error {
	ctx := asUser(cmd.Context())
	all, errs := o.collectScratch()
	for _, output := range outputs {
		removed, err := o.collectOutput(ctx, output)
		all, errs = append(all, removed...), errors.Join(errs, err)
	}
	if o.hasCluster() {
		errs = errors.Join(errs, o.withCleaner(ctx, func(c *gc.Cleaner) error {
			c.DryRun = o.dryRun
			removed, err := c.Collect(ctx, cfg)
			all = append(all, removed...)
			if errors.Is(err, board.ErrRefused) || errors.Is(err, gc.ErrNoIndex) {
				return cli.Usage(err)
			}
			return err
		}))
	}
	if err := o.print(cmd.OutOrStdout(), all, !o.dryRun); err != nil {
		return err
	}
	if o.dryRun && len(all) > 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "nothing was deleted; rerun with --yes to delete")
	}
	return errs
}

// collectOutput collects the garbage of an output of ddiff run. A process that uses the output is an error.
func (o cleanOptions) collectOutput(ctx context.Context, address string) (removed []gc.Removal, err error) {
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
func (o cleanOptions) collectScratch() (all []gc.Removal, err error) {
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
func (o cleanOptions) removeFolder(dir string) (r gc.Removal, err error) {
	lock, err := storage.AcquireLock(dir)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	r = gc.Removal{Kind: "scratch", Name: dir}
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
