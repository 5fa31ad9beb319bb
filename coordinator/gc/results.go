package gc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"ddiff/coordinator/index"
	"ddiff/coordinator/report"
	"ddiff/coordinator/report/figure"
	"ddiff/manifest"
	"ddiff/storage"
)

var (
	// outputName matches the output that a campaign has by default: its id, see manifest.Spec.ID.
	outputName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*-[0-9a-f]{8}$`)
	// itemKey matches the files of items.
	itemKey = regexp.MustCompile(`^items/[0-9a-f]{64}/(` + alternatives(manifest.FileResult, manifest.FileTrace, manifest.FileTruth,
		manifest.FileMeasurement, manifest.FileData, "mask.npy", "kernel.npy", manifest.FileRestored, manifest.FileUnclipped) + `)$`)
	// outputKeys matches the other objects of an output.
	outputKeys = regexp.MustCompile(`^(checkpoints/[0-9a-f]{64}(\.[^/]*)?|probes/[A-Z2-7]+|failures/[a-z0-9-]+/[0-9]+\.jsonl` +
		`|logs/[a-z0-9-]+/[0-9a-f]{64}\.[^/]+\.json|scores/[^/]+/[0-9a-f]+\.jsonl|tuning/[0-9a-f]+\.json` +
		`|sheets/[^/]+\.png|sheets/runs/[0-9a-f]{64}/[^/]+\.png|figures/((` + alternatives(figure.Kinds()...) + `)[^/]*\.(svg|png|csv)|` +
		regexp.QuoteMeta(report.KeyCaptions) + `)|` + alternatives(report.KeyCSV, report.KeySummaryJSON,
		report.KeySummaryMarkdown, report.KeyMosaic, report.KeyPage) + `)$`)
)

// IsOutputKey reports whether a key in an output has the form of the files that campaigns, ddiff score and ddiff tune write beside the items.
// Other files of these folders, such as those of another output inside, are not deleted or copied.
func IsOutputKey(key string) bool { return outputKeys.MatchString(key) }

// isOutputKey is IsOutputKey for a key that begins with the output.
func isOutputKey(output, key string) bool {
	return IsOutputKey(strings.TrimPrefix(key, outputKey(output, "")))
}

// alternatives is a pattern of some texts.
func alternatives(texts ...string) string {
	for i := range texts {
		texts[i] = regexp.QuoteMeta(texts[i])
	}
	return strings.Join(texts, "|")
}

// resultFolder is an output without a campaign.
type resultFolder struct {
	name    string
	items   int
	newest  time.Time
	last    string // the item of the last key
	foreign bool   // has an object that no campaign writes
	own     bool   // has an object that only campaigns write
}

// add counts an object, which follows all objects with smaller keys.
func (f *resultFolder) add(info storage.Info) {
	key := strings.TrimPrefix(info.Key, f.name+"/")
	if info.Modified.After(f.newest) {
		f.newest = info.Modified
	}
	switch item := path.Dir(key); {
	case itemKey.MatchString(key):
		f.own = true
		if item != f.last {
			f.items, f.last = f.items+1, item
		}
	case !IsOutputKey(key):
		f.foreign = true
	case item == manifest.FailuresFolder+f.name, item == manifest.LogsFolder+f.name:
		f.own = true
	}
}

// CollectResults deletes outputs to which no campaign of the board and of the index refers, and whose newest object is
// older than age. Such an output has the id of a campaign as its name. A folder with an object that no campaign writes is
// left. The deletion ends with an error when a campaign begins to use the output meanwhile: such a campaign restores the missing results
// again before it finishes. CollectResults lists the whole store.
func (c *Cleaner) CollectResults(ctx context.Context, age time.Duration) (removed []Removal, err error) {
	if err := c.checkIndex(ctx); err != nil {
		return nil, fmt.Errorf("collect results: %w", err)
	}
	folders, err := c.resultFolders(ctx, age)
	if err != nil {
		return nil, fmt.Errorf("collect results: %w", err)
	}
	for _, f := range folders {
		r, e := c.removeResults(ctx, f, age)
		if r.Objects > 0 {
			removed = append(removed, r)
		}
		err = errors.Join(err, e)
	}
	return removed, err
}

// removeResults deletes an output. A result.json proves that all other files of its item exist, so it is deleted first. Files of
// items are deleted last: after a crash they prove that the folder belongs to campaigns. Objects that are younger than age stay: a campaign
// has written them since.
func (c *Cleaner) removeResults(ctx context.Context, f *resultFolder, age time.Duration) (Removal, error) {
	all := Removal{Kind: "results", Name: f.name, Items: f.items}
	prefix := f.name + "/"
	unused := func() error {
		used, err := c.usedOutputs(ctx)
		if id := used[index.OutputDigest(f.name)]; err == nil && id != "" {
			err = fmt.Errorf("campaign %s began to use the output", id)
		}
		return err
	}
	isResult := func(key string) bool { return itemKey.MatchString(key) && path.Base(key) == manifest.FileResult }
	for _, include := range []func(key string) bool{
		isResult,
		IsOutputKey,
		func(key string) bool { return itemKey.MatchString(key) && !isResult(key) },
	} {
		listing := c.list(ctx, prefix, func(info storage.Info) bool {
			return include(strings.TrimPrefix(info.Key, prefix)) && c.now().Sub(info.Modified) >= age
		})
		r, err := c.remove(ctx, all.Kind, f.name, listing, unused)
		all.Objects += r.Objects
		all.Bytes += r.Bytes
		if err != nil {
			return all, err
		}
	}
	empty, ok := c.Store.(folders)
	if !ok || c.DryRun {
		return all, nil
	}
	// Workers remove their probes and checkpoints, and leave the folders.
	return all, errors.Join(empty.RemoveEmpty(prefix+"probes"), empty.RemoveEmpty(prefix+"checkpoints"))
}

// resultFolders returns the old outputs to which no campaign refers, and in which only campaigns have written.
func (c *Cleaner) resultFolders(ctx context.Context, age time.Duration) ([]*resultFolder, error) {
	used, err := c.usedOutputs(ctx)
	if err != nil {
		return nil, err
	}
	byName := map[string]*resultFolder{}
	for info, err := range c.Store.List(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("list the store: %w", err)
		}
		name, _, below := strings.Cut(info.Key, "/")
		if !below || used[index.OutputDigest(name)] != "" || !outputName.MatchString(name) {
			continue
		}
		if byName[name] == nil {
			byName[name] = &resultFolder{name: name}
		}
		byName[name].add(info)
	}
	var old []*resultFolder
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if f := byName[name]; f.own && !f.foreign && c.now().Sub(f.newest) >= age {
			old = append(old, f)
		}
	}
	return old, nil
}

// usedOutputs returns a campaign for each digest of an output that campaigns of the board and of the index have, and of
// the first element of those on the board.
func (c *Cleaner) usedOutputs(ctx context.Context) (map[string]string, error) {
	onBoard, entries, err := c.campaigns(ctx)
	used := map[string]string{}
	for id, e := range entries {
		used[e.Output] = id
	}
	for _, r := range onBoard {
		top, _, _ := strings.Cut(r.Output, "/")
		used[index.OutputDigest(r.Output)], used[index.OutputDigest(top)] = r.ID, r.ID
	}
	return used, err
}
