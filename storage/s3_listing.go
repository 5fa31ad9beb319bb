package storage

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
)

const (
	// rootBytes is the size of the beginning of a listing that has its root element.
	rootBytes = 4096
	// maxDocument and maxTags limit an XML document, of which the client of S3 reads any size: a page of 1000 objects has at most 4 MiB and
	// some 30 tags for each, of which the shortest needs 600 bytes of memory.
	maxDocument = 16 << 20
	maxTags     = 64 * listPageSize
)

// listings is a transport that reports an answer to a listing that is none. The client of S3 reads any XML document, such as an error
// with the status 200, as an empty listing, and takes an answer with the status 202 for an object without a body. It also limits the
// documents, since addresses of strangers name servers.
type listings struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l listings) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.RoundTripper.RoundTrip(r)
	if err == nil && !answers(r.Method, answer.StatusCode) {
		answer.Body.Close() // opened for reading
		return nil, fmt.Errorf("the server answers with status %d; check that the endpoint is an S3 server", answer.StatusCode)
	}
	if err != nil || answer.StatusCode != http.StatusOK || r.Method != http.MethodGet {
		return answer, err // the client limits the text of errors
	}
	query := r.URL.Query()
	if query.Has("location") {
		answer.Body = withBody(&document{Reader: answer.Body}, answer.Body)
	}
	if query.Get("list-type") != "2" {
		return answer, nil
	}
	body := bufio.NewReaderSize(answer.Body, rootBytes)
	beginning, err := body.Peek(rootBytes)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	root := rootElement(beginning)
	switch {
	case err == nil && root == "ListBucketResult":
	case err == nil && root == "Error": // the client reads it
		answer.StatusCode = http.StatusServiceUnavailable
	default:
		answer.Body.Close() // opened for reading
		return nil, errors.Join(err, fmt.Errorf("the answer to a listing is none: it begins with %.80q", beginning))
	}
	answer.Body = withBody(&document{Reader: body}, answer.Body)
	return answer, nil
}

// answers reports whether a server of S3 answers a request with a status. Those of errors and of redirections are the client's.
func answers(method string, status int) bool {
	switch status {
	case http.StatusOK, http.StatusPartialContent:
		return true
	case http.StatusNoContent:
		return method == http.MethodDelete
	}
	return status/100 != 2
}

func withBody(r io.Reader, c io.Closer) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{r, c}
}

// document reads an XML document within the limits.
type document struct {
	io.Reader
	size, tags int
}

func (d *document) Read(p []byte) (int, error) {
	n, err := d.Reader.Read(p)
	d.size += n
	d.tags += bytes.Count(p[:n], []byte("<"))
	if d.size > maxDocument || d.tags > maxTags {
		return 0, fmt.Errorf("the answer is too large: %d bytes with %d tags", d.size, d.tags)
	}
	return n, err
}

// rootElement returns the name of the first element of an XML document, or "".
func rootElement(document []byte) string {
	for d := xml.NewDecoder(bytes.NewReader(document)); ; {
		token, err := d.RawToken()
		if err != nil {
			return ""
		}
		if begin, ok := token.(xml.StartElement); ok {
			return begin.Name.Local
		}
	}
}
