package manifest

import "encoding/hex"

// FailedItems returns a failed result for each entry of a row that cannot be expanded: one per task,
// method and run, in the order of [Expander.Expand]. The caller adds Runtime and Finished.
//
// The items have placeholder IDs, from the row's name and paths and the campaign, because the digests
// of unreadable files are unknown. After a repair of the row its items get their real IDs and run.
func FailedItems(row Row, spec *Spec, first int, reason string) []Result {
	campaign := spec.ID()
	var out []Result
	for _, p := range places(row, spec, first) {
		out = append(out, failedItem(row, spec, campaign, p, reason))
	}
	return out
}

func failedItem(row Row, spec *Spec, campaign string, p place, reason string) Result {
	it := p.item(row, spec, campaign)
	it.Image = source(row.Image, "")
	it.Measurement = source(row.Measurement, "")
	it.Mask = source(row.Overrides.Mask, "")
	it.Kernel = source(row.Overrides.Kernel, "")
	it.ID = placeholderID(row, it, p.cell)
	return Result{Schema: SchemaVersion, Item: it, Outcome: OutcomeFailed, Reason: reason}
}

// placeholderID returns a digest of the known properties of a cell. Encoding cannot fail: specs and
// lists have finite numbers only.
func placeholderID(row Row, it Item, cell int) string {
	key, err := digest(struct {
		Schema      int    `json:"schema"`
		Placeholder bool   `json:"placeholder"`
		Campaign    string `json:"campaign"`
		Name        string `json:"name"`
		Image       string `json:"image"`
		Measurement string `json:"measurement"`
		Task        string `json:"task"`
		Cell        int    `json:"cell"`
	}{SchemaVersion, true, it.Campaign, row.Name, row.Image, row.Measurement, it.Task, cell})
	if err != nil {
		panic("manifest: encode a placeholder: " + err.Error())
	}
	return hex.EncodeToString(key[:])
}
