package dataset

import (
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"ddiff/manifest"
)

func (r *reading) list(a Address, emit emitter) error {
	obj, err := r.openPart(a)
	if err != nil {
		return err
	}
	defer obj.close() //nolint:errcheck // opened for reading
	return manifest.ReadList(manifest.FormatOf(a.base()), newBlocks(r.ctx, obj).reader(), r.listConfig(a), emit)
}

// listConfig returns the configuration of a list, which locates the files of its rows.
func (r *reading) listConfig(a Address) manifest.ListConfig {
	return manifest.ListConfig{File: a.base(), Columns: r.dataset.Columns, Locate: func(text string) (manifest.Place, error) {
		return r.locate(a, text)
	}}
}

// locate resolves the text of a file in a list: an address, or a path relative to the list. A remote list is not
// trusted: it must not name local files, parent directories, or servers for requests with our keys.
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
			return place(), fmt.Errorf("%w: remote list names a local file", ErrRefused)
		case a.scheme == schemeS3 && a.url.RawQuery == "" && list.scheme == schemeS3:
			a.url.RawQuery = list.url.RawQuery
		case a.scheme == schemeS3 && a.url.RawQuery != "" && (list.scheme != schemeS3 || a.url.RawQuery != list.url.RawQuery):
			return place(), fmt.Errorf("%w: remote list sets the parameters of a bucket; remove the query", ErrRefused)
		}
	}
	if a.scheme == schemeS3 && a.key() == "" {
		return place(), fmt.Errorf("%w: object is missing", ErrAddress)
	}
	if a.local() && a.part == partAll {
		return manifest.LocateFile("/", a.file)
	}
	return place(), r.allowed(a)
}

func (r *reading) relative(list Address, text string) (manifest.Place, error) {
	if list.local() {
		return manifest.LocateFile(filepath.Dir(list.file), text)
	}
	if err := checkRelative(text); err != nil {
		return manifest.Place{Address: "", Name: path.Base(text)}, err
	}
	if list.scheme == schemeS3 {
		clean := path.Clean(text)
		a := list.sibling(path.Join(path.Dir(list.key()), clean))
		return manifest.Place{Address: a.String(), Name: clean}, nil
	}
	ref, err := url.Parse(text)
	if err != nil || ref.IsAbs() || ref.Host != "" || ref.Fragment != "" || ref.Path == "" {
		return manifest.Place{Name: path.Base(text)}, fmt.Errorf("%w: not a path below the list", ErrAddress)
	}
	if err := checkRelative(ref.Path); err != nil { // decoded
		return manifest.Place{Name: path.Base(text)}, err
	}
	a := Address{scheme: list.scheme, url: list.url.ResolveReference(ref)}
	return manifest.Place{Address: a.String(), Name: path.Clean(ref.Path)}, nil
}

// checkRelative refuses paths outside of the directory of their list.
func checkRelative(text string) error {
	switch {
	case strings.HasPrefix(text, "/"):
		return fmt.Errorf("%w: remote list names an absolute path; write a path below the list, or an address with a scheme", ErrRefused)
	case strings.ContainsAny(text, "\\\x00"):
		return fmt.Errorf("%w: path contains a backslash or a null byte", ErrAddress)
	}
	for part := range strings.SplitSeq(text, "/") {
		if part == ".." {
			return fmt.Errorf("%w: remote list names a parent directory; write a path below the list, or an address with a scheme", ErrRefused)
		}
	}
	if path.Clean(text) == "." {
		return fmt.Errorf("%w: file is missing", ErrAddress)
	}
	return nil
}
