package entry

import (
	"errors"
)

// ErrTemporary: the report needs a temporary file, which large campaigns do, and cannot write it.
var ErrTemporary = errors.New("temporary directory")
