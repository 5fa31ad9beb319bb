package main

import (
	"fmt"
	"maps"

	"ddiff/manifest"
)

// itemLine describes an item that is not restored.
func itemLine(r manifest.Result) string {
	return printable(fmt.Sprintf("%s (%s): %s", r.Item.Name, r.Item.Task, r.Reason))
}

// sources returns the source files of an item by field.
func sources(it manifest.Item) map[string]*manifest.Source {
	all := map[string]*manifest.Source{
		"image": it.Image, "measurement": it.Measurement, "mask": it.Mask, "kernel": it.Kernel,
	}
	maps.DeleteFunc(all, func(_ string, s *manifest.Source) bool { return s == nil })
	return all
}
