package redact_test

import (
	"strings"
	"testing"

	"ddiff/internal/redact"
)

func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"":                                          "",
		"/photos/cat?.png":                          "/photos/cat?.png",
		"photos/a@b#c.png":                          "photos/a@b#c.png",
		"dir:https://x?y":                           "dir:https://x?y",
		"file:///photos/cat.png":                    "file:///photos/cat.png",
		"https://host/a.png":                        "https://host/a.png",
		"https://host/a@b.png":                      "https://host/a@b.png",
		"https://h/a.png?X-Amz-Signature=Z":         "https://h/a.png",
		"https://h/a.png?id=7&sig=Z&se=1":           "https://h/a.png",
		"https://me:Z@h:1/a.png?token=Z":            "https://h:1/a.png",
		"https://me:p@Z@h/a.png":                    "https://h/a.png",
		"HTTPS://me:Z@h/a.png":                      "HTTPS://h/a.png",
		"https://h/a?endpoint=Z&region=Z&ca_file=Z": "https://h/a",
		"https://h?Z":                               "https://h",
		"https://h/a.png#Z":                         "https://h/a.png",
		"tar+https://h/a.tar?sig=Z#name=c.png&offset=512&size=9": "tar+https://h/a.tar#name=c.png&offset=512&size=9",
		"parquet+s3://b/a?region=x#column=i&row=1":               "parquet+s3://b/a?region=x#column=i&row=1",
		"s3://b/a?endpoint=https://h&region=x&path_style=true":   "s3://b/a?endpoint=https://h&region=x&path_style=true",
		"s3://b/a?endpoint=https%3A%2F%2Fh%3A1&ca_file=/c":       "s3://b/a?endpoint=https%3A%2F%2Fh%3A1&ca_file=/c",
		"s3://key:Z@b/a?secret_key=Z&region=x&X-Amz-Token=Z":     "s3://b/a?region=x",
		"s3://b/a?endpoint=https://me:Z@h&region=x":              "s3://b/a?endpoint=https%3A%2F%2Fh&region=x",
		"s3://b/a?endpoint=me:Z@h":                               "s3://b/a?endpoint=h",
		"s3://b/a?endpoint=%Z":                                   "s3://b/a",
		"{https://h/a?sig=Z,https://u:Z@h/b,/c}":                 "{https://h/a,https://h/b,/c}",
		"s3://b/{a,b}.tar?region=x":                              "s3://b/{a,b}.tar?region=x",
	} {
		got := redact.Address(text)
		if got != want {
			t.Errorf("Address(%q) = %q, want %q", text, got, want)
		}
		if again := redact.Address(got); again != got {
			t.Errorf("Address(%q) = %q, not idempotent", got, again)
		}
	}
}

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"no address: a@b?c":              "no address: a@b?c",
		"https://h/a b.png?sig=Z":        "https://h/a b.png",
		"https://me:Z@h/a failed":        "https://h/a failed",
		`Get "https://h/a?sig=Z": EOF`:   `Get "https://h/a": EOF`,
		`Get "https://h/a b?sig=Z": EOF`: `Get "https://h/a b": EOF`,
		"dial (nats://me:Z@h:4222), then\ttls://me:Z@h:4222":      "dial (nats://h:4222), then\ttls://h:4222",
		"read {https://h/a?sig=Z,tar+https://me:Z@h/b?sig=Z} now": "read {https://h/a,tar+https://h/b now",
		"path=s3://k:Z@b/a?region=x&secret_key=Z\nand":            "path=s3://b/a?region=x\nand",
		"<https://h/a?t=Z>": "<https://h/a>",
	} {
		if got := redact.Text(text); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestCredentials(t *testing.T) {
	for text, want := range map[string]bool{
		"https://me@h/a": true, "{https://h/b,https://me@h/a}": true, "s3://k:s@b": true, "tar+s3://k:s@b/a.tar#offset=0&size=1": true,
		"https://h/a@b": false, "/me@h": false, "https://h?a@b": false, "me@h": false,
	} {
		if got := redact.Credentials(text); got != want {
			t.Errorf("Credentials(%q) = %v", text, got)
		}
	}
}

// FuzzAddress: no byte of a user or of a query of a web address remains.
func FuzzAddress(f *testing.F) {
	f.Add("me:pw", "h/a", "sig=1")
	f.Fuzz(func(t *testing.T, user, place, query string) {
		const mark = "Zq7"
		if strings.ContainsAny(user, "/?#") || strings.ContainsAny(place, "@?#") {
			t.Skip()
		}
		got := redact.Address("https://" + user + mark + "@" + place + "?" + query + mark)
		if strings.Contains(got, mark) && !strings.Contains(place, mark) {
			t.Errorf("%q has the secret", got)
		}
	})
}
