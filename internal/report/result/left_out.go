package result

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"ddiff/manifest"
)

// FileLeftOut is the name of the list of inputs that are no rows, in the folder of a campaign below [FailuresFolder].
const FileLeftOut = "left_out.json"

// PutLeftOut stores such a list.
func PutLeftOut(ctx context.Context, store Files, key string, skips manifest.Skips) error {
	data, err := json.Marshal(skips)
	if err != nil {
		return fmt.Errorf("encode %s: %w", key, err)
	}
	return Put(ctx, store, key, append(data, '\n'))
}

// LeftOut returns the inputs of campaigns that were left out, by the lists of the outputs: those of one campaign, or, for an empty name, of all. An input of several campaigns counts
// once.
func LeftOut(ctx context.Context, outputs []Output, campaign string) (all manifest.Skips, err error) {
	for _, o := range outputs {
		for info, err := range o.Store.List(ctx, FailuresFolder) {
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", o.Address, err)
			}
			name, ok := strings.CutSuffix(strings.TrimPrefix(info.Key, FailuresFolder), "/"+FileLeftOut)
			if !ok || campaign != "" && name != campaign || path.Base(name) != name {
				continue
			}
			data, err := o.Store.Get(ctx, info.Key)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", o.Address, err)
			}
			var skips manifest.Skips
			if err := json.Unmarshal(data, &skips); err != nil {
				return nil, fmt.Errorf("read %s: %w: decode %s: %w; move the file away and run its campaign again", o.Address, ErrArtifact, info.Key, err)
			}
			all.Unite(skips)
		}
	}
	return all, nil
}
