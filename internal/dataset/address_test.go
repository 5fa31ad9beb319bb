package dataset

import (
	"errors"
	"strings"
	"testing"
)

// TestParse: the parts, the text and the base name of addresses.
func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, again, base string // again: the text of the address, if it differs
		want              Address
	}{
		{"/photos/./cat.png", "/photos/cat.png", "cat.png", Address{scheme: "file", file: "/photos/cat.png"}},
		{"file:///photos/a%20b.png", "/photos/a b.png", "a b.png", Address{scheme: "file", file: "/photos/a b.png"}},
		{"https://example.org:8443/a/b.png?x=1", "", "b.png", Address{scheme: "https"}},
		{"https://example.org:65535/", "", "example.org:65535", Address{scheme: "https"}},
		{"http://example.org", "", "example.org", Address{scheme: "http"}},
		{"https://example.org/a%2Fb.png", "", "b.png", Address{scheme: "https"}},
		{"s3://bucket/a%2Fb.png", "s3://bucket/a/b.png", "b.png", Address{scheme: "s3"}},
		{"s3://bucket", "", "bucket", Address{scheme: "s3"}},
		{"s3://bucket/a/b.png", "", "b.png", Address{scheme: "s3"}},
		{"tar+file:///x.tar#name=cat.png&offset=512&size=1234", "", "cat.png", Address{part: partMember, scheme: "file", file: "/x.tar", name: "cat.png", offset: 512, size: 1234}},
		{"tar+s3://b/x.tar#offset=0&size=0", "", "", Address{part: partMember, scheme: "s3"}},
		{"parquet+https://h/x.parquet#column=image.bytes&name=c&row=0", "", "c", Address{part: partCell, scheme: "https", name: "c", column: "image.bytes"}},
		{"parquet+file:///x.parquet#column=image&row=7", "", "", Address{part: partCell, scheme: "file", file: "/x.parquet", column: "image", row: 7}},
		{"/" + strings.Repeat("a", MaxAddressBytes-1), "", strings.Repeat("a", MaxAddressBytes-1), Address{scheme: "file", file: "/" + strings.Repeat("a", MaxAddressBytes-1)}},
	} {
		a, err := Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		again := c.again
		if again == "" {
			again = c.text
		}
		if a.String() != again || a.base() != c.base {
			t.Errorf("%s: text %q, base name %q, want %q and %q", c.text, a.String(), a.base(), again, c.base)
		}
		a.url = nil
		if a != c.want {
			t.Errorf("%s: %+v, want %+v", c.text, a, c.want)
		}
		if got := a.local(); got != (c.want.scheme == "file") {
			t.Errorf("%s: on this machine: %v", c.text, got)
		}
	}
	for text, words := range map[string]string{
		"": "text is empty",
		"/" + strings.Repeat("a", MaxAddressBytes): "text has 4097 bytes, at most 4096",
		"/a\xff":                             "text is not UTF-8",
		"https://h/%zz":                      "not a URL",
		"https://u:p@h/x":                    "credentials",
		"https://h/x#y":                      "'#' is not allowed",
		"https://h/x#":                       "'#' is not allowed",
		"https://h/a%0Ab":                    "control characters",
		"s3://b/a%90":                        "text is not UTF-8",
		"file:///os/a%90":                    "text is not UTF-8",
		"s3:b":                               "slashes are missing",
		"file://host/x":                      "want file:///PATH",
		"file:///x?y":                        "want file:///PATH",
		"file:x":                             "slashes are missing",
		"https:///x":                         "host or bucket is missing",
		"https://:443/x":                     "host or bucket is missing",
		"https://h:0/x":                      "port is invalid",
		"https://h:65536/x":                  "port is invalid",
		"ftp://h/x":                          `scheme "ftp" is not supported`,
		"tar+s3://b#offset=0&size=1":         "object is missing",
		"tar+s3://b/#offset=0&size=1":        "object is missing",
		"tar+file:///x.tar":                  "needs offset and size",
		"tar+file:///x.tar#offset=1":         "needs offset and size",
		"tar+file:///x.tar#size=1":           "needs offset and size",
		"tar+file:///x.tar#offset=-1&size=1": "needs offset and size",
		"tar+file:///x.tar#offset=x&size=1":  "needs offset and size",
		"tar+file:///x.tar#offset=9223372036854775807&size=1": "needs offset and size",
		"tar+file:///x.tar#offset=%zz":                        "not a URL",
		"tar+file:///x.tar#offset=0;size=1":                   "fragment is invalid",
		"parquet+file:///x#row=1":                             "needs row and column",
		"parquet+file:///x#column=a":                          "needs row and column",
		"parquet+file:///x#column=&row=1":                     "needs row and column",
	} {
		a, err := Parse(text)
		if !errors.Is(err, ErrAddress) || !strings.Contains(err.Error(), words) || a != (Address{}) {
			t.Errorf("%.60s: %+v, %v; want ErrAddress with %q", text, a, err, words)
		}
	}
	for _, text := range []string{"tar+file:///x.tar#offset=9223372036854775806&size=1", "https://h:1/x", "https://h/a%90"} {
		if _, err := Parse(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
