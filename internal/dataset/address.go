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

	"ddiff/internal/redact"
)

// MaxAddressBytes is the maximum length of an address. Every item contains addresses.
const MaxAddressBytes = 4096

// Schemes of addresses, and prefixes of addresses that name a part of an object.
const (
	schemeFile  = "file"
	schemeS3    = "s3"
	schemeHTTPS = "https"
	schemeHTTP  = "http"

	prefixMember = "tar+"
	prefixCell   = "parquet+"
)

// Address locates bytes. Its text is one of
//
//	/photos/cat.png                                           a file of this machine
//	file:///photos/cat.png                                    the same
//	s3://bucket/photos/cat.png?endpoint=https://s3.example    an object; the query is that of storage.ParseS3URL
//	https://example.org/photos/cat.png                        a resource of a web server
//	tar+OBJECT#name=cat.png&offset=512&size=1234              bytes in a tar file
//	parquet+OBJECT#column=image.bytes&name=cat.png&row=7      one cell of a Parquet file, rows from 0
//
// where OBJECT is an address with a scheme. The name in a fragment is for people. Special characters are
// percent-encoded in all forms but the first.
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

type part int

const (
	partAll    part = iota // the complete object
	partMember             // a member of a tar file
	partCell               // a cell of a Parquet file
)

// Parse parses an address. The error wraps ErrAddress and does not repeat the text, which may contain a secret.
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
		return Address{}, errors.New("text is empty")
	case len(text) > MaxAddressBytes:
		return Address{}, fmt.Errorf("text has %d bytes, at most %d are allowed", len(text), MaxAddressBytes)
	case !utf8.ValidString(text):
		return Address{}, errors.New("text is not UTF-8")
	case filepath.IsAbs(text):
		return Address{scheme: schemeFile, file: filepath.Clean(text)}, nil
	}
	var a Address
	for prefix, p := range map[string]part{prefixMember: partMember, prefixCell: partCell} {
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			a.part, text = p, rest
			break
		}
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return a, errors.New("not a URL")
	case u.User != nil:
		return a, errors.New("URL contains credentials; set them in the environment")
	case a.part == partAll && (u.Fragment != "" || strings.HasSuffix(text, "#")):
		return a, errors.New("'#' is not allowed; write %23")
	case strings.ContainsFunc(u.Host, unicode.IsControl) || u.Scheme != schemeS3 && strings.ContainsFunc(u.Path, unicode.IsControl):
		return a, errors.New("control characters are not allowed")
	case !utf8.ValidString(u.Path) && u.Scheme != schemeHTTPS && u.Scheme != schemeHTTP:
		return a, errors.New("text is not UTF-8")
	}
	if err := a.readFragment(u.EscapedFragment()); err != nil {
		return a, err
	}
	u.Fragment, u.RawFragment = "", ""
	err = a.readURL(u)
	return a, err
}

func (a *Address) readURL(u *url.URL) error {
	a.scheme = u.Scheme
	switch {
	case u.Opaque != "":
		return fmt.Errorf("slashes are missing after %q", u.Scheme+":")
	case u.Scheme == schemeFile:
		if u.Host != "" || u.RawQuery != "" || !filepath.IsAbs(u.Path) {
			return errors.New("want file:///PATH")
		}
		a.file = filepath.Clean(u.Path)
		return nil
	case u.Host == "" || u.Hostname() == "":
		return errors.New("host or bucket is missing")
	case !validPort(u.Port()):
		return errors.New("port is invalid; use 1 to 65535")
	case u.Scheme == schemeS3:
		if a.part != partAll && strings.Trim(u.Path, "/") == "" {
			return errors.New("object is missing")
		}
	case u.Scheme != schemeHTTPS && u.Scheme != schemeHTTP:
		return fmt.Errorf("scheme %q is not supported; use file, s3 or https", u.Scheme)
	}
	u.ForceQuery = false
	if u.Scheme == schemeS3 {
		u.RawPath = "" // unlike in a key, %2F and / may differ on a web server
	}
	a.url = u
	return nil
}

// validPort reports whether a URL's port, which may be empty, is that of a server.
func validPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && port > 0
}

func (a *Address) readFragment(fragment string) error {
	if a.part == partAll {
		return nil
	}
	values, err := url.ParseQuery(fragment)
	if err != nil {
		return errors.New("fragment is invalid")
	}
	number := func(name string) (n int64) {
		if err == nil {
			n, err = strconv.ParseInt(values.Get(name), 10, 64)
		}
		if n < 0 {
			err = strconv.ErrRange
		}
		return n
	}
	a.name = values.Get("name")
	if a.part == partMember {
		a.offset, a.size = number("offset"), number("size")
		if err != nil || a.offset+a.size < 0 {
			return errors.New("member of a tar file needs offset and size")
		}
		return nil
	}
	a.row, a.column = number("row"), values.Get("column")
	if err != nil || a.column == "" {
		return errors.New("cell of a Parquet file needs row and column")
	}
	return nil
}

// String returns the text of the address for [Parse]: a path for a file, a URL otherwise.
func (a Address) String() string {
	if a.part == partAll {
		if a.scheme == schemeFile {
			return a.file
		}
		return a.objectURL()
	}
	values := url.Values{}
	if a.name != "" {
		values.Set("name", a.name)
	}
	if a.part == partMember {
		values.Set("offset", strconv.FormatInt(a.offset, 10))
		values.Set("size", strconv.FormatInt(a.size, 10))
		return prefixMember + a.objectURL() + "#" + values.Encode()
	}
	values.Set("row", strconv.FormatInt(a.row, 10))
	values.Set("column", a.column)
	return prefixCell + a.objectURL() + "#" + values.Encode()
}

func (a Address) objectURL() string {
	if a.scheme == schemeFile {
		return (&url.URL{Scheme: schemeFile, Path: a.file}).String()
	}
	return a.url.String()
}

// Public returns the address for errors and logs, without the query of a web address, which may be a signature.
func (a Address) Public() string {
	return redact.Address(a.String())
}

func (a Address) local() bool { return a.scheme == schemeFile }

// base returns the file name with its extension, which determines the kind of file.
func (a Address) base() string {
	switch {
	case a.part != partAll:
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

func (a Address) key() string { return strings.TrimPrefix(a.url.Path, "/") }

// sibling returns another object of the same bucket or server, with the same query.
func (a Address) sibling(path string) Address {
	u := *a.url
	u.Path, u.RawPath = "/"+path, ""
	return Address{scheme: a.scheme, url: &u}
}
