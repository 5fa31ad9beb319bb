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

	"ddiff/coordinator/board"
	"ddiff/coordinator/index"
	"ddiff/coordinator/report"
	"ddiff/coordinator/report/figure"
	"ddiff/manifest"
	"ddiff/storage"
)

const (
	// claimAge is the time after which the claim of a collection that died is deleted, confirmEvery the interval in which a
	// live one renews its claim.
	claimAge     = time.Hour
	confirmEvery = time.Minute
)

// Left is a folder that CollectResults has not deleted.
type Left struct {
	// Name is the folder, Reason the cause.
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

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
	objects int
	bytes   int64
	newest  time.Time
	last    string // the item of the last key
	foreign string // the first key that no campaign writes
	own     bool   // has an object that only campaigns write
}

// add counts an object, which follows all objects with smaller keys.
func (f *resultFolder) add(info storage.Info) {
	key := strings.TrimPrefix(info.Key, f.name+"/")
	f.objects++
	f.bytes += info.Size
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
		if f.foreign == "" {
			f.foreign = key
		}
	case item == manifest.FailuresFolder+f.name, item == manifest.LogsFolder+f.name:
		f.own = true
	}
}

// obstacle is the reason to leave the folder, "" for none.
func (f *resultFolder) obstacle() string {
	switch {
	case f.foreign != "":
		return fmt.Sprintf("it has %s, which no campaign writes", f.foreign)
	case !f.own:
		return "it has no result of a campaign"
	}
	return ""
}

// CollectResults deletes outputs to which no campaign of the board and of the index refers, and whose newest object is
// older than age. Such an output has the id of a campaign as its name. A folder with an object that no campaign writes is
// left. It lists the whole store.
//
// A campaign that is submitted to the output during the deletion is rejected until its end: the deletion writes a claim
// to the index and then looks for campaigns; a campaign enters board and index and then looks for claims, see
// package coordinator. If both see the other, the output is left and the campaign is rejected.
func (c *Cleaner) CollectResults(ctx context.Context, age time.Duration) (removed []Removal, left []Left, err error) {
	if err := c.checkIndex(ctx); err != nil {
		return nil, nil, fmt.Errorf("collect results: %w", err)
	}
	folders, err := c.resultFolders(ctx, age)
	if err != nil {
		return nil, nil, fmt.Errorf("collect results: %w", err)
	}
	for _, f := range folders {
		o := &orphan{Cleaner: c, x: index.New(c.Store), age: age, resultFolder: f}
		r, reason, e := o.collect(ctx)
		if r.Objects > 0 {
			removed = append(removed, r)
		}
		if reason != "" {
			left = append(left, Left{Name: f.name, Reason: reason})
		}
		if e != nil {
			err = errors.Join(err, fmt.Errorf("collect the results of %s: %w", f.name, e))
		}
	}
	return removed, left, err
}

// resultFolders returns the old outputs to which no campaign refers.
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
		if f := byName[name]; c.now().Sub(f.newest) >= age {
			old = append(old, f)
		}
	}
	return old, nil
}

// usedOutputs returns a campaign for each digest of an output that campaigns of the board and of the index have, and of
// the first element of those on the board.
func (c *Cleaner) usedOutputs(ctx context.Context) (map[string]string, error) {
	entries, err := index.New(c.Store).All(ctx)
	if err != nil {
		return nil, err
	}
	used := map[string]string{}
	for id, e := range entries {
		if !e.IsClaim() {
			used[e.Output] = id
		}
	}
	if c.Board == nil {
		return used, nil
	}
	all, skipped, err := board.Campaigns(ctx, c.Board)
	if err := errors.Join(append(skipped, err)...); err != nil {
		return nil, err
	}
	for _, s := range all {
		top, _, _ := strings.Cut(s.Campaign.Output, "/")
		used[index.OutputDigest(s.Campaign.Output)], used[index.OutputDigest(top)] = s.Campaign.ID, s.Campaign.ID
	}
	return used, nil
}

// abandonedClaims lists the claims of collections that died.
func (c *Cleaner) abandonedClaims(ctx context.Context) objects {
	return c.list(ctx, index.Prefix, func(i storage.Info) bool {
		e, ok := index.ParseKey(i.Key)
		return ok && e.IsClaim() && c.now().Sub(i.Modified) >= claimAge
	})
}

// orphan is the deletion of one output.
type orphan struct {
	*Cleaner
	*resultFolder
	x         index.Index
	age       time.Duration
	claim     index.Entry
	confirmed time.Time
}

// inUseError is the reason for which a deletion ends: a campaign has begun to use the output, or the claim is lost.
type inUseError string

func (e inUseError) Error() string { return "the output is left: " + string(e) }

// collect deletes the output. reason is the reason for which it, or the rest of it, was left.
func (o *orphan) collect(ctx context.Context) (r Removal, reason string, err error) {
	if reason := o.obstacle(); reason != "" {
		return r, reason, nil
	}
	r = Removal{Kind: "results", Name: o.name, Items: o.items, Objects: o.objects, Bytes: o.bytes}
	if o.DryRun {
		return r, "", nil
	}
	r.Objects, r.Bytes = 0, 0
	o.claim = index.Claim(o.name)
	if err := o.x.Add(ctx, o.claim); err != nil {
		return r, "", err
	}
	err = o.examine(ctx)
	if err == nil {
		r.Items = o.items
		err = o.run(ctx, &r)
	}
	if inUse, ok := errors.AsType[inUseError](err); ok {
		reason, err = string(inUse), nil
	}
	return r, reason, errors.Join(err, o.Store.Delete(context.WithoutCancel(ctx), o.claim.Key()))
}

// examine looks for campaigns, and lists the output again: it may have changed before the claim.
func (o *orphan) examine(ctx context.Context) error {
	if err := o.confirm(ctx); err != nil {
		return err
	}
	now := &resultFolder{name: o.name}
	for info, err := range o.each(ctx, func(string) bool { return true }) {
		if err != nil {
			return fmt.Errorf("list the output: %w", err)
		}
		now.add(info)
	}
	o.resultFolder = now
	if reason := now.obstacle(); reason != "" {
		return inUseError(reason)
	}
	if o.now().Sub(now.newest) < o.age {
		return inUseError("it has new objects")
	}
	return nil
}

// confirm looks for campaigns of the output, and renews the claim.
func (o *orphan) confirm(ctx context.Context) error {
	if _, err := o.Store.Stat(ctx, o.claim.Key()); errors.Is(err, storage.ErrNotFound) {
		return inUseError("another command has deleted the claim of this deletion")
	} else if err != nil {
		return err
	}
	if err := o.x.Add(ctx, o.claim); err != nil {
		return err
	}
	used, err := o.usedOutputs(ctx)
	if err != nil {
		return err
	}
	if id := used[o.claim.Output]; id != "" {
		return inUseError(fmt.Sprintf("campaign %s began to use it", id))
	}
	o.confirmed = o.now().Round(0) // without the monotonic clock, which stops in a suspended machine
	return nil
}

// run deletes the objects. A result.json proves that all other files of its item exist, so it is deleted first. Files of
// items are deleted last: after a crash they prove that the folder belongs to campaigns.
func (o *orphan) run(ctx context.Context, r *Removal) error {
	for _, include := range []func(key string) bool{
		func(key string) bool { return itemKey.MatchString(key) && path.Base(key) == manifest.FileResult },
		IsOutputKey,
		itemKey.MatchString,
	} {
		part, err := o.remove(ctx, r.Kind, o.name, o.each(ctx, include), nil)
		r.Objects += part.Objects
		r.Bytes += part.Bytes
		if err != nil {
			return err
		}
	}
	f, ok := o.Store.(folders)
	if !ok {
		return nil
	}
	// Workers remove their probes and checkpoints, and leave the folders.
	return errors.Join(f.RemoveEmpty(o.name+"/probes"), f.RemoveEmpty(o.name+"/checkpoints"))
}

// each lists the objects whose key in the output include selects, and confirms the claim regularly.
func (o *orphan) each(ctx context.Context, include func(key string) bool) objects {
	return func(yield func(storage.Info, error) bool) {
		for info, err := range o.Store.List(ctx, o.name+"/") {
			if err == nil && o.now().Round(0).Sub(o.confirmed) >= confirmEvery {
				err = o.confirm(ctx)
			}
			if err == nil && !include(strings.TrimPrefix(info.Key, o.name+"/")) {
				continue
			}
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}
