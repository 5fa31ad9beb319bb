package dataset

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxAddressBytes is the longest address. It travels in every item.
const MaxAddressBytes = 4096

// The schemes of addresses, and the prefixes of those that name a part of an object.
const (
	schemeFile  = "file"
	schemeS3    = "s3"
	schemeHTTPS = "https"
	schemeHTTP  = "http"

	prefixMember = "tar+"
	prefixCell   = "parquet+"
)

// Address says where bytes are. Its text is one of
//
//	/photos/cat.png                                           a file of this machine
//	file:///photos/cat.png                                    the same
//	s3://bucket/photos/cat.png?endpoint=https://s3.example    an object; the query is that of storage.ParseS3URL
//	https://example.org/photos/cat.png                        what a server has
//	tar+OBJECT#name=cat.png&offset=512&size=1234              bytes in a tar file
//	parquet+OBJECT#column=image.bytes&name=cat.png&row=7      one cell of a Parquet file, rows from 0
//
// where OBJECT is one of the forms with a scheme. The name in a fragment is for people. What
// is special in a URL is percent-encoded in all but the first.
type Address struct {
	part   part
	scheme string
	file   string   // the path of schemeFile
	url    *url.URL // of the other schemes, without fragment

	name         string
	offset, size int64  // of a member
	column       string // of a cell
	row          int64  // of a cell
}

// part is what of an object an address names.
type part int

const (
	whole  part = iota
	member      // of a tar file
	cell        // of a Parquet file
)

// Parse reads an address. The error wraps ErrAddress and does not repeat the text, which may
// hold a secret.
func Parse(text string) (Address, error) {
	a, err := parse(text)
	if err != nil {
		return Address{}, fmt.Errorf("%w: %w", ErrAddress, err)
	}
	return a, nil
}

func parse(text string) (Address, error) {
	switch {
	case text == "":
		return Address{}, errors.New("it is empty")
	case len(text) > MaxAddressBytes:
		return Address{}, fmt.Errorf("it has %d bytes, at most %d are allowed", len(text), MaxAddressBytes)
	case !utf8.ValidString(text):
		return Address{}, errors.New("it is not UTF-8")
	case filepath.IsAbs(text):
		return Address{scheme: schemeFile, file: filepath.Clean(text)}, nil
	}
	var a Address
	for prefix, p := range map[string]part{prefixMember: member, prefixCell: cell} {
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			a.part, text = p, rest
			break
		}
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return a, errors.New("it is no URL")
	case u.User != nil:
		return a, errors.New("it holds credentials; give them in the environment")
	case a.part == whole && (u.Fragment != "" || strings.HasSuffix(text, "#")):
		return a, errors.New("a '#' in a name must be written %23")
	case strings.ContainsFunc(u.Path+u.Host, unicode.IsControl):
		return a, errors.New("it has control characters")
	case !utf8.ValidString(u.Path) && u.Scheme != schemeHTTPS && u.Scheme != schemeHTTP:
		return a, errors.New("it is not UTF-8")
	}
	if err := a.readFragment(u.EscapedFragment()); err != nil {
		return a, err
	}
	u.Fragment, u.RawFragment = "", ""
	err = a.readURL(u)
	return a, err
}

// readURL takes over the object.
func (a *Address) readURL(u *url.URL) error {
	a.scheme = u.Scheme
	switch {
	case u.Opaque != "":
		return fmt.Errorf("after %q there are no slashes", u.Scheme+":")
	case u.Scheme == schemeFile:
		if u.Host != "" || u.RawQuery != "" || !filepath.IsAbs(u.Path) {
			return errors.New("a file address is file:///PATH")
		}
		a.file = filepath.Clean(u.Path)
		return nil
	case u.Host == "" || u.Hostname() == "":
		return errors.New("it names no host or bucket")
	case u.Scheme == schemeS3:
		if a.part != whole && strings.Trim(u.Path, "/") == "" {
			return errors.New("it names no object")
		}
	case u.Scheme != schemeHTTPS && u.Scheme != schemeHTTP:
		return fmt.Errorf("scheme %q is not read; there are file, s3 and https", u.Scheme)
	}
	u.ForceQuery = false
	if u.Scheme == schemeS3 {
		u.RawPath = "" // a key is its text; a web server may tell %2F from /
	}
	a.url = u
	return nil
}

// readFragment takes over what of the object is meant. Each parameter comes once.
func (a *Address) readFragment(fragment string) error {
	if a.part == whole {
		return nil
	}
	values, err := url.ParseQuery(fragment)
	if err != nil {
		return errors.New("the fragment cannot be read")
	}
	number := func(text string, into *int64) error {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return errors.New("a number of the fragment is none")
		}
		*into = n
		return nil
	}
	for key, list := range values {
		if len(list) != 1 {
			return fmt.Errorf("%q is given %d times", key, len(list))
		}
		err := error(nil)
		switch text := list[0]; {
		case key == "name":
			a.name = text
		case a.part == member && key == "offset":
			err = number(text, &a.offset)
		case a.part == member && key == "size":
			err = number(text, &a.size)
		case a.part == cell && key == "row":
			err = number(text, &a.row)
		case a.part == cell && key == "column":
			a.column = text
		default:
			err = errors.New("the fragment has an unknown parameter")
		}
		if err != nil {
			return err
		}
	}
	switch {
	case a.part == member && (!values.Has("offset") || !values.Has("size") || a.offset+a.size < 0):
		return errors.New("a member of a tar file needs offset and size")
	case a.part == cell && (!values.Has("row") || a.column == ""):
		return errors.New("a cell of a Parquet file needs row and column")
	}
	return nil
}

// String is the address as [Parse] reads it: a path for a file, a URL otherwise.
func (a Address) String() string {
	if a.part == whole {
		if a.scheme == schemeFile {
			return a.file
		}
		return a.object()
	}
	values := url.Values{}
	if a.name != "" {
		values.Set("name", a.name)
	}
	if a.part == member {
		values.Set("offset", strconv.FormatInt(a.offset, 10))
		values.Set("size", strconv.FormatInt(a.size, 10))
		return prefixMember + a.object() + "#" + values.Encode()
	}
	values.Set("row", strconv.FormatInt(a.row, 10))
	values.Set("column", a.column)
	return prefixCell + a.object() + "#" + values.Encode()
}

// object is the URL of the object as a whole.
func (a Address) object() string {
	if a.scheme == schemeFile {
		return (&url.URL{Scheme: schemeFile, Path: a.file}).String()
	}
	return a.url.String()
}

// Public is the address for errors and logs: without the query of a web address, which may be
// a signature.
func (a Address) Public() string {
	if a.url != nil && a.scheme != schemeS3 && a.url.RawQuery != "" {
		u := *a.url
		u.RawQuery = ""
		a.url = &u
	}
	return a.String()
}

// local tells whether the bytes are on this machine.
func (a Address) local() bool { return a.scheme == schemeFile }

// file name, with its extension, for people and to tell what it is.
func (a Address) base() string {
	switch {
	case a.part != whole:
		return a.name
	case a.local():
		return filepath.Base(a.file)
	default:
		if base := path.Base(a.url.Path); base != "/" && base != "." {
			return base
		}
		return a.url.Host
	}
}

// key is the object's key in its bucket.
func (a Address) key() string { return strings.TrimPrefix(a.url.Path, "/") }

// at is another object of the same bucket or server, with the same query.
func (a Address) at(path string) Address {
	u := *a.url
	u.Path, u.RawPath = "/"+path, ""
	return Address{scheme: a.scheme, url: &u}
}
