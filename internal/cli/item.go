package cli

import (
	"fmt"
	"maps"

	"ddiff/manifest"
)

// ItemLine describes an item that is not restored.
func ItemLine(r manifest.Result) string {
	return Printable(fmt.Sprintf("%s (%s): %s", r.Item.Name, r.Item.Task, r.Reason))
}

// ItemSources returns the source files of an item by field.
func ItemSources(it manifest.Item) map[string]*manifest.Source {
	all := map[string]*manifest.Source{
		"image": it.Image, "measurement": it.Measurement, "mask": it.Mask, "kernel": it.Kernel,
	}
	maps.DeleteFunc(all, func(_ string, s *manifest.Source) bool { return s == nil })
	return all
}
