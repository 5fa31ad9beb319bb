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

// rootBytes is the size of the beginning of a listing that has its root element.
const rootBytes = 4096

// listings is a transport that reports an answer to a listing that is none. The client of S3 reads any XML document, such as an error
// with the status 200, as an empty listing.
type listings struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l listings) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.RoundTripper.RoundTrip(r)
	if err != nil || answer.StatusCode != http.StatusOK || r.Method != http.MethodGet || r.URL.Query().Get("list-type") != "2" {
		return answer, err
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
	answer.Body = struct {
		io.Reader
		io.Closer
	}{body, answer.Body}
	return answer, nil
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
