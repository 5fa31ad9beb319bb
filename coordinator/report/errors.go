package report

import "errors"

// ErrIncomplete: [Write] wrote the report, but could not read an artifact that a result lists. The page and the
// sheets mark the missing artifact.
var ErrIncomplete = errors.New("report lacks artifacts")

// ErrArtifact: a file of an item is missing, damaged, or differs from the digest in its result.
var ErrArtifact = errors.New("wrong file")

// ErrTemporary: the report needs a temporary file, which large campaigns do, and cannot write it.
var ErrTemporary = errors.New("temporary directory")

// ErrNotComparable: two sets of results cannot be compared; the text states the reason.
var ErrNotComparable = errors.New("not comparable")

// ErrFilter: a condition of a filter cannot be read, or names a property that no result has.
var ErrFilter = errors.New("condition")

// ErrVersions: a table or a comparison would mix versions of one metric, or no result has the chosen version.
var ErrVersions = errors.New("metric versions")

// ErrScores: the scores of an output cannot be read.
var ErrScores = errors.New("scores")

// ErrPublished: a file of published figures cannot be read.
var ErrPublished = errors.New("published figures")

// ErrUnknownRule: the selection rule is none of [Rules].
var ErrUnknownRule = errors.New("unknown selection rule")

// ErrUnknownFormat: the table format is none of the three.
var ErrUnknownFormat = errors.New("unknown table format")
