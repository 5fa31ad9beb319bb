package shard

import (
	"cmp"
	"slices"

	"ddiff/internal/tune"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// keep removes the items that the campaign leaves out: those of the other side of its split, and those that Config.Keep
// refuses. The others get consecutive indices from first on. An item on both sides of the split fails. Results of rows that cannot be read remain, unless Config.Keep refuses
// them: no digest assigns them to a side.
func (s *Sharder) keep(items []item.Item, failed []item.Result, first int) ([]item.Item, []item.Result) {
	split := s.cfg.Spec.Split
	restricted := split != nil && (split.Run == manifest.SideTune || split.Run == manifest.SideTest)
	if !restricted && s.cfg.Keep == nil {
		return items, failed
	}
	var keptItems []item.Item
	var keptFailed []item.Result
	for _, it := range items {
		if restricted {
			side, err := tune.SideOf(*split, tune.ImageOf(&it), split.Fold)
			if err != nil {
				failed = append(failed, item.Result{
					Schema: item.SchemaVersion, Item: it, Outcome: item.OutcomeFailed, Reason: err.Error(),
				})
				continue
			}
			if side != split.Run {
				continue
			}
		}
		if s.cfg.Keep == nil || s.cfg.Keep(&it) {
			keptItems = append(keptItems, it)
		}
	}
	for _, r := range failed {
		if s.cfg.Keep == nil || s.cfg.Keep(&r.Item) {
			keptFailed = append(keptFailed, r)
		}
	}
	number(keptItems, keptFailed, first)
	return keptItems, keptFailed
}

// number gives the items of a row consecutive indices in their order.
func number(items []item.Item, failed []item.Result, first int) {
	var all []*item.Item
	for i := range items {
		all = append(all, &items[i])
	}
	for i := range failed {
		all = append(all, &failed[i].Item)
	}
	slices.SortFunc(all, func(a, b *item.Item) int { return cmp.Compare(a.Index, b.Index) })
	for i, it := range all {
		it.Index = first + i
	}
}
