package dataset

import (
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"ddiff/manifest"
)

// list reads a list of any origin, a block at a time.
func (r *reading) list(a Address, emit emitter) error {
	obj, err := r.openPart(a)
	if err != nil {
		return err
	}
	defer obj.close() //nolint:errcheck // opened for reading
	rows := manifest.ListRows(r.ctx, manifest.FormatOf(a.base()), newBlocks(r.ctx, obj).reader(), r.listConfig(a))
	for row, err := range rows {
		if err != nil {
			return err
		}
		if err := emit(row); err != nil {
			return err
		}
	}
	return nil
}

// listConfig is how the rows of a list find their files.
func (r *reading) listConfig(a Address) manifest.ListConfig {
	return manifest.ListConfig{File: a.base(), Columns: r.dataset.Columns, Locate: func(text string) (manifest.Place, error) {
		return r.locate(a, text)
	}}
}

// locate finds what a list calls a file: an address, or a path that starts from the list. The
// text of a list from elsewhere is not trusted: it leads neither to this machine nor upwards,
// nor to a server of its choice with our keys.
func (r *reading) locate(list Address, text string) (manifest.Place, error) {
	if !manifest.IsAddress(text) {
		return r.relative(list, text)
	}
	a, err := Parse(text)
	if err != nil {
		return manifest.Place{}, err
	}
	place := func() manifest.Place { return manifest.Place{Address: a.String(), Name: a.base()} }
	if !list.local() {
		switch {
		case a.local():
			return place(), fmt.Errorf("%w: a list from elsewhere names a file of this machine", ErrRefused)
		case a.scheme == schemeS3 && a.url.RawQuery == "" && list.scheme == schemeS3:
			a.url.RawQuery = list.url.RawQuery
		case a.scheme == schemeS3 && a.url.RawQuery != "" && (list.scheme != schemeS3 || a.url.RawQuery != list.url.RawQuery):
			return place(), fmt.Errorf("%w: a list from elsewhere says how to reach a bucket; leave the query out", ErrRefused)
		}
	}
	if a.scheme == schemeS3 && a.key() == "" {
		return place(), fmt.Errorf("%w: it names no object", ErrAddress)
	}
	if a.local() && a.part == whole {
		return manifest.LocateFile("/", a.file)
	}
	return place(), r.allowed(a)
}

// relative finds a path that starts from the list.
func (r *reading) relative(list Address, text string) (manifest.Place, error) {
	if list.local() {
		return manifest.LocateFile(filepath.Dir(list.file), text)
	}
	if err := checkRelative(text); err != nil {
		return manifest.Place{Address: "", Name: path.Base(text)}, err
	}
	if list.scheme == schemeS3 {
		clean := path.Clean(text)
		a := list.at(path.Join(path.Dir(list.key()), clean))
		return manifest.Place{Address: a.String(), Name: clean}, nil
	}
	ref, err := url.Parse(text)
	if err != nil || ref.IsAbs() || ref.Host != "" || ref.Fragment != "" || ref.Path == "" {
		return manifest.Place{Name: path.Base(text)}, fmt.Errorf("%w: it is no path below the list", ErrAddress)
	}
	if err := checkRelative(ref.Path); err != nil { // once more without the percent signs
		return manifest.Place{Name: path.Base(text)}, err
	}
	a := Address{scheme: list.scheme, url: list.url.ResolveReference(ref)}
	return manifest.Place{Address: a.String(), Name: path.Clean(ref.Path)}, nil
}

// checkRelative refuses paths that lead out of the place of their list.
func checkRelative(text string) error {
	switch {
	case strings.HasPrefix(text, "/"):
		return fmt.Errorf("%w: a list from elsewhere names an absolute path; write a path below the list, or a whole address", ErrRefused)
	case strings.ContainsAny(text, "\\\x00"):
		return fmt.Errorf("%w: a path has a character that is not allowed", ErrAddress)
	}
	for part := range strings.SplitSeq(text, "/") {
		if part == ".." {
			return fmt.Errorf("%w: a list from elsewhere leads upwards; write a path below the list, or a whole address", ErrRefused)
		}
	}
	if path.Clean(text) == "." {
		return fmt.Errorf("%w: it names no file", ErrAddress)
	}
	return nil
}
