package comparison

import (
	"errors"
)

// ErrNotComparable: two sets of results cannot be compared; the text states the reason.
var ErrNotComparable = errors.New("not comparable")
