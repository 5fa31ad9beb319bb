package cli

import (
	"fmt"

	"ddiff/manifest"
)

// ItemLine describes an item that is not restored.
func ItemLine(r manifest.Result) string {
	return Printable(fmt.Sprintf("%s (%s): %s", r.Item.Name, r.Item.Task, r.Reason))
}
