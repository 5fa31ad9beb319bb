package result

import (
	"errors"

	"ddiff/internal/failure"
)

// ErrIncomplete: the report is complete, but could not read an artifact that a result lists. The page and the
// sheets mark the missing artifact.
var ErrIncomplete = errors.New("report lacks artifacts")

// ErrArtifact: a file of an item is missing, damaged, or differs from the digest in its result.
var ErrArtifact = failure.New(failure.Incomplete, "wrong file")

// ErrFilter: a condition of a filter cannot be read, or names a property that no result has.
var ErrFilter = failure.New(failure.Input, "condition")

// ErrVersions: a table or a comparison would mix versions of one metric, or no result has the chosen version.
var ErrVersions = failure.New(failure.Usage, "metric versions")

// ErrScores: the scores of an output cannot be read.
var ErrScores = failure.New(failure.Input, "scores")
