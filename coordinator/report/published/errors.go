package published

import (
	"errors"
)

// ErrPublished: a file of published figures cannot be read.
var ErrPublished = errors.New("published figures")
