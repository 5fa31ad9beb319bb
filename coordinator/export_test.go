package coordinator

import "ddiff/manifest"

// StoredOutcomes returns key and content of a part of the ledger in which items are done.
func StoredOutcomes(campaign string, number int, items []manifest.Item) (key string, data []byte, err error) {
	p := part{partHeader: partHeader{Campaign: campaign}}
	for _, it := range items {
		k, _ := parseIdentity(it.ID)
		p.entries = append(p.entries, partEntry{id: k, state: done})
	}
	data, err = p.encode()
	return outcomePartKey(campaign, number), data, err
}
