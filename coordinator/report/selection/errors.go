package selection

import "errors"

// ErrUnknownRule: the selection rule is none of [Rules].
var ErrUnknownRule = errors.New("unknown selection rule")
