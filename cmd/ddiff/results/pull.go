package results

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"ddiff/internal/cli"
	"ddiff/internal/cli/resultname"
	"ddiff/internal/cli/server"
	"ddiff/internal/coordinator/gc"
	"ddiff/internal/redact"
	"ddiff/internal/regular"
	"ddiff/internal/report"
	"ddiff/internal/report/result"
	"ddiff/internal/tune"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
)

// pullCalls is the number of items that are copied concurrently.
const pullCalls = 8

// maxResult limits the size of a result.json in bytes; those of ddiff have a few KiB.
const maxResult = 4 << 20

// pullOptions are the flags of pull.
type pullOptions struct {
	items []string // beginnings of identities
	tasks []string
	json  bool
	api   server.Flags
}

func newPullCommand() *cobra.Command {
	var o pullOptions
	cmd := &cobra.Command{
		Use:   "pull SOURCE DIR",
		Short: "Copy results from a bucket to a directory",
		Long: "Copy the items of an output, by default all of them with the report, from a bucket to DIR. Check each file\n" +
			"against the digest in its result.json before writing it, and write result.json last.\n" +
			"Rerun the same command to resume: items that DIR has are not copied again. DIR is an output like that of\n" +
			"ddiff run, with links under restored/. SOURCE is s3://bucket/prefix?endpoint=URL, a directory, or with --server the id\n" +
			"of a campaign, whose done items are copied without keys of the store; ddiff report DIR then makes the report.",
		Example: "  ddiff pull \"s3://results/demo?endpoint=https://host\" out/demo\n" +
			"  ddiff pull s3://results/demo out/demo --task hdr\n" +
			"  ddiff pull s3://results/demo out/demo --item 5f0c11d2\n" +
			"  ddiff pull night-5f0c11d2 out/night --server https://host:8620",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.pull(cmd.Context(), args[0], args[1], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.items, "item", nil, "only items whose ids begin with one of these `prefixes`, separated by commas")
	f.StringSliceVar(&o.tasks, "task", nil, "only items of these `tasks`, separated by commas")
	f.BoolVar(&o.json, "json", false, "print the counts as a JSON object")
	o.api.Add(f, "for a campaign SOURCE")
	return cmd
}

// source has the files of an output.
type source interface {
	Get(ctx context.Context, key string) ([]byte, error)
	List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error]
}

// puller copies items from an output to a store.
type puller struct {
	pullOptions
	from    source
	results source // from, with the limit maxResult
	to      storage.Store
	dir     string
	show    func(line string) // a status line on a terminal
	stderr  io.Writer

	mu     sync.Mutex
	counts pullCounts
	named  map[string]bool // skipped names
}

// pullCounts counts the selected items by outcome.
type pullCounts struct {
	Items      int `json:"items"`      // selected by the flags
	Copied     int `json:"copied"`     // by this call
	Present    int `json:"present"`    // in the directory already
	Unfinished int `json:"unfinished"` // without a result
	Wrong      int `json:"wrong"`      // with a file that does not match its digest
}

func (o pullOptions) pull(ctx context.Context, source, dir string, stdout, stderr io.Writer) (err error) {
	if manifest.IsAddress(dir) {
		return cli.Usage(fmt.Errorf("pull: DIR %s is an address; give a directory of this machine", dir))
	}
	if err := cli.CheckTarget(dir); err != nil {
		return err
	}
	p := &puller{pullOptions: o, dir: dir, stderr: stderr, show: cli.StatusLine(stderr), named: map[string]bool{}}
	closeSource, err := p.open(ctx, source)
	if err != nil {
		return err
	}
	defer closeSource()
	to, err := storage.Open(ctx, dir, storage.Options{Lock: true})
	if err != nil {
		return fmt.Errorf("open %s: %w", redact.Address(dir), err)
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	p.to = to.Store
	err = p.copyAll(ctx)
	p.show("")
	if err != nil {
		return err
	}
	if p.counts.Items == 0 {
		return cli.Usage(fmt.Errorf("pull: %s has no items%s; check the address and the flags", source, p.selection()))
	}
	if err := p.print(stdout); err != nil {
		return err
	}
	if p.counts.Wrong > 0 {
		return fmt.Errorf("%w: %d of %d items have files that do not match their digests", cli.ErrMismatch, p.counts.Wrong, p.counts.Items)
	}
	return nil
}

// open opens the source, until close is called.
func (p *puller) open(ctx context.Context, source string) (closeSource func(), err error) {
	if p.api.Address != "" {
		c, err := p.api.Client()
		if err != nil {
			return nil, err
		}
		p.from = remote{c, source}
		p.results = p.from
		return func() {}, nil
	}
	from, err := storage.Open(ctx, source, storage.Options{ReadOnly: true, Logger: slog.New(slog.DiscardHandler), Skipped: p.skip})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cli.Usage(fmt.Errorf("pull: %s: no such directory; give s3://bucket/prefix or the directory of an output", source))
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", redact.Address(source), err)
	}
	// A second handle, since measurements are larger than results.
	results, err := storage.Open(ctx, source, storage.Options{ReadOnly: true, Logger: slog.New(slog.DiscardHandler), MaxBytes: maxResult})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", redact.Address(source), err), from.Close())
	}
	p.from, p.results = from.Store, results.Store
	return func() {
		_ = from.Close() // nothing was written
		_ = results.Close()
	}, nil
}

// hasID and hasTask report whether the flags leave an item in.
func (o pullOptions) hasID(id string) bool {
	return len(o.items) == 0 || slices.ContainsFunc(o.items, func(begin string) bool { return strings.HasPrefix(id, begin) })
}

func (o pullOptions) hasTask(task string) bool {
	return len(o.tasks) == 0 || slices.Contains(o.tasks, task)
}

// selection describes the flags for an error.
func (o pullOptions) selection() string {
	text := ""
	if len(o.items) > 0 {
		text += " with an id that begins with " + strings.Join(o.items, " or ")
	}
	if len(o.tasks) > 0 {
		text += " of the task " + strings.Join(o.tasks, " or ")
	}
	return text
}

func (p *puller) print(stdout io.Writer) error {
	c := p.counts
	if p.json {
		return json.NewEncoder(stdout).Encode(c)
	}
	_, err := fmt.Fprintf(stdout, "items=%d copied=%d present=%d unfinished=%d wrong=%d dir=%s\n",
		c.Items, c.Copied, c.Present, c.Unfinished, c.Wrong, p.dir)
	return err
}

// copyAll copies the selected items, the report where all are selected, and writes the readable names.
func (p *puller) copyAll(ctx context.Context) error {
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(pullCalls)
	var listing error
	for id, err := range itemIDs(inner, p.from) {
		if err != nil {
			listing = fmt.Errorf("list items: %w", err)
			break
		}
		if !p.hasID(id) {
			continue
		}
		if unlistable(id) {
			p.skip(item.Key(id, ""))
			continue
		}
		group.Go(func() error { return p.copyItem(inner, id) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if listing != nil {
		return listing
	}
	// A report of some items needs the records of tunings and the failures too.
	if err := p.copyFiles(ctx, nil, tune.Folder, result.FailuresFolder); err != nil {
		return err
	}
	if len(p.items) == 0 && len(p.tasks) == 0 {
		if err := p.copyReport(ctx); err != nil {
			return err
		}
	}
	resultname.Write(ctx, p.dir, func(yield func(resultname.Row, error) bool) {
		for id, err := range itemIDs(ctx, p.to) {
			if !yield(resultname.Row{ID: id}, err) {
				return
			}
		}
	}, p.stderr)
	return ctx.Err()
}

// count applies one change to the counts and shows them.
func (p *puller) count(add func(c *pullCounts)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	add(&p.counts)
	p.show(fmt.Sprintf("%d items  %d copied  %d present  %d wrong", p.counts.Items, p.counts.Copied, p.counts.Present, p.counts.Wrong))
}

// copyItem copies one item, unless the flags leave it out or the directory has it.
func (p *puller) copyItem(ctx context.Context, id string) error {
	key := item.Key(id, item.FileResult)
	result, err := p.results.Get(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		if len(p.tasks) == 0 {
			p.count(func(c *pullCounts) { c.Items, c.Unfinished = c.Items+1, c.Unfinished+1 })
		}
		return nil
	}
	if errors.Is(err, storage.ErrTooLarge) || errors.Is(err, storage.ErrCorrupt) {
		p.wrong(key, err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	var r item.Result
	if ok := json.Unmarshal(result, &r) == nil && r.Item.ID == id; !ok {
		p.wrong(key, "is not the result of this item")
		return nil
	}
	if !p.hasTask(r.Item.Task) {
		return nil
	}
	// result.json is written last: if it exists, all other files exist.
	if _, err := p.to.Stat(ctx, key); err == nil {
		p.count(func(c *pullCounts) { c.Items, c.Present = c.Items+1, c.Present+1 })
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(r.Artifacts)) {
		if problem, err := p.copyArtifact(ctx, id, name, r.Artifacts[name]); err != nil || problem != "" {
			if err == nil {
				p.wrong(item.Key(id, name), problem)
			}
			return err
		}
	}
	if err := p.to.Put(ctx, key, result); err != nil {
		return err
	}
	p.count(func(c *pullCounts) { c.Items, c.Copied = c.Items+1, c.Copied+1 })
	return nil
}

// copyArtifact copies one file of an item. Problem states why its bytes cannot be trusted; then nothing is written.
func (p *puller) copyArtifact(ctx context.Context, id, name, want string) (problem string, err error) {
	key := item.Key(id, name)
	if name != filepath.Base(name) || name == item.FileResult || storage.CheckKey(key) != nil {
		return "is not a file of an item", nil //nolint:nilerr // the reason is the answer
	}
	if data, err := p.to.Get(ctx, key); err == nil && regular.SHA256(data) == want {
		return "", nil
	}
	data, err := p.from.Get(ctx, key)
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrCorrupt), errors.Is(err, storage.ErrBadKey),
		errors.Is(err, storage.ErrTooLarge):
		return err.Error(), nil
	case err != nil:
		return "", err
	case regular.SHA256(data) != want:
		return fmt.Sprintf("has the SHA-256 %.12s, %s says %.12s", regular.SHA256(data), item.FileResult, want), nil
	}
	return "", p.to.Put(ctx, key, data)
}

// wrong reports an item that cannot be copied; the others are copied all the same.
func (p *puller) wrong(key, problem string) {
	p.count(func(c *pullCounts) { c.Items, c.Wrong = c.Items+1, c.Wrong+1 })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.show("")
	fmt.Fprintf(p.stderr, "%s; move the item away and run its campaign again\n", cli.Printable(fmt.Sprintf("%s: %s", key, problem)))
}

// unlistable reports whether a name has characters that a server has replaced, since its answer cannot represent them.
func unlistable(name string) bool { return strings.ContainsRune(name, utf8.RuneError) }

// skip reports a name of the source that no file of ddiff has.
func (p *puller) skip(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.named[name] || len(p.named) > cli.MaxLines {
		return
	}
	p.named[name] = true
	p.show("")
	if len(p.named) > cli.MaxLines {
		fmt.Fprintln(p.stderr, "skipped further names that are not of ddiff")
		return
	}
	fmt.Fprintf(p.stderr, "%s\n", cli.Printable(fmt.Sprintf("skipped %q: not a name of ddiff", name)))
}

// copyReport copies the files beside the items: the report, and the scores of ddiff score. They replace those of an earlier report.
func (p *puller) copyReport(ctx context.Context) error {
	return p.copyFiles(ctx, append(report.Keys(), cli.KeyTuning), "sheets/", report.FigureFolder, result.ScoresFolder)
}

// copyFiles copies the files that exist of the keys, and those of the folders.
func (p *puller) copyFiles(ctx context.Context, keys []string, folders ...string) error {
	for _, key := range keys {
		if err := p.copyFile(ctx, key); err != nil {
			return err
		}
	}
	for _, folder := range folders {
		for info, err := range p.from.List(ctx, folder) {
			switch {
			case err != nil:
			case unlistable(info.Key):
				p.skip(info.Key)
			case !gc.IsOutputKey(info.Key): // of another output inside, which has digests of its own
			default:
				err = p.copyFile(ctx, info.Key)
			}
			if err != nil {
				return fmt.Errorf("copy %s: %w", folder, err)
			}
		}
	}
	return nil
}

// copyFile copies a file without a digest, if it exists.
func (p *puller) copyFile(ctx context.Context, key string) error {
	data, err := p.from.Get(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		return nil // an interrupted campaign has no report
	}
	if err != nil {
		return err
	}
	if strings.HasPrefix(key, result.FailuresFolder) {
		if data = p.selectFailures(ctx, key, data); len(data) == 0 {
			return nil
		}
	}
	return p.to.Put(ctx, key, data)
}

// selectFailures returns the lines of a list of failures that the flags leave in, or that the directory has. A damaged line stays.
func (p *puller) selectFailures(ctx context.Context, key string, list []byte) (kept []byte) {
	present := map[string]bool{}
	if before, err := p.to.Get(ctx, key); err == nil {
		for line := range bytes.Lines(before) {
			present[string(line)] = true
		}
	}
	for line := range bytes.Lines(list) {
		var r item.Result
		if present[string(line)] || json.Unmarshal(line, &r) != nil || p.hasID(r.Item.ID) && p.hasTask(r.Item.Task) {
			kept = append(kept, line...)
		}
	}
	return kept
}
