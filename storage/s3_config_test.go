package storage_test

import (
	"strings"
	"testing"

	"ddiff/storage"
)

func TestS3ConfigValidateNamesTheField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, field string
		change      func(*storage.S3Config)
	}{
		{"no bucket", "Bucket", func(c *storage.S3Config) { c.Bucket = "" }},
		{"bucket in capitals", "Bucket", func(c *storage.S3Config) { c.Bucket = "Bucket" }},
		{"bucket with a slash", "Bucket", func(c *storage.S3Config) { c.Bucket = "a/bucket" }},
		{"long bucket", "Bucket", func(c *storage.S3Config) { c.Bucket = strings.Repeat("b", 64) }},
		{"prefix with a slash at its end", "Prefix", func(c *storage.S3Config) { c.Prefix = "a/" }},
		{"prefix that leaves the bucket", "Prefix", func(c *storage.S3Config) { c.Prefix = "a/../b" }},
		{"reserved prefix", "Prefix", func(c *storage.S3Config) { c.Prefix = ".ddiff" }},
		{"long prefix", "Prefix", func(c *storage.S3Config) { c.Prefix = strings.Repeat("long/", 102) + "xx" }},
		{"scheme", "Endpoint", func(c *storage.S3Config) { c.Endpoint = "ftp://host" }},
		{"no host", "Endpoint", func(c *storage.S3Config) { c.Endpoint = "https://:9000" }},
		{"path in the endpoint", "Endpoint", func(c *storage.S3Config) { c.Endpoint = "https://host/bucket" }},
		{"password in the endpoint", "Endpoint", func(c *storage.S3Config) { c.Endpoint = "https://user:hunter2@host" }},
		{"not a URL", "Endpoint", func(c *storage.S3Config) { c.Endpoint = "https://user:hunter2@%zz" }},
		{"negative size", "MaxBytes", func(c *storage.S3Config) { c.MaxBytes = -1 }},
		{"more than one PUT", "MaxBytes", func(c *storage.S3Config) { c.MaxBytes = storage.MaxS3Bytes + 1 }},
		{"timeout", "Timeout", func(c *storage.S3Config) { c.Timeout = -1 }},
		{"no key of the certificate", "KeyFile", func(c *storage.S3Config) { c.CertFile = "cert.pem" }},
		{"no secret key", "SecretKey", func(c *storage.S3Config) { c.AccessKey = "a" }},
		{"no access key", "SecretKey", func(c *storage.S3Config) { c.SecretKey = "hunter2" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			config := storage.S3Config{Bucket: "bucket"}
			must(t, config.Validate())
			c.change(&config)
			err := config.Validate()
			if err == nil || !strings.Contains(err.Error(), "field "+c.field+":") {
				t.Fatalf("Validate = %v, want an error about %s", err, c.field)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error contains the password: %v", err)
			}
		})
	}
}

func TestParseS3URL(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]storage.S3Config{
		"s3://results":             {Bucket: "results"},
		"s3://results/":            {Bucket: "results"},
		"s3://results/a/b":         {Bucket: "results", Prefix: "a/b"},
		"s3://results/a/b/":        {Bucket: "results", Prefix: "a/b"},
		"s3://results/a%20b/%23":   {Bucket: "results", Prefix: "a b/#"},
		"s3://b-1.x?region=eu-1":   {Bucket: "b-1.x", Region: "eu-1"},
		"s3://bbb?path_style=true": {Bucket: "bbb", Addressing: storage.AddressingPath},
		"s3://bbb/p?endpoint=http://localhost:7070&path_style=false&ca_file=/etc/ca.pem&read_only=true": {
			Bucket: "bbb", Prefix: "p", Endpoint: "http://localhost:7070",
			Addressing: storage.AddressingVirtualHost, CAFile: "/etc/ca.pem", ReadOnly: true,
		},
	} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			got, err := storage.ParseS3URL(address)
			must(t, err)
			if got.Bucket != want.Bucket || got.Prefix != want.Prefix || got.Endpoint != want.Endpoint ||
				got.Region != want.Region || got.Addressing != want.Addressing || got.CAFile != want.CAFile ||
				got.ReadOnly != want.ReadOnly {
				t.Errorf("ParseS3URL = %+v, want %+v", got, want)
			}
		})
	}
}

func TestParseS3URLRefuses(t *testing.T) {
	t.Parallel()
	for address, word := range map[string]string{
		"":                               "s3://",
		"results":                        "s3://",
		"https://results/a":              "s3://",
		"s3://user:hunter2@results/a":    "credentials",
		"s3://user:hunter2@%zz/a":        "URL",
		"s3://":                          "Bucket",
		"s3://UPPER/a":                   "Bucket",
		"s3://results//a":                "Prefix",
		"s3://results/../a":              "Prefix",
		"s3://results/a#b":               "%23",
		"s3://results?secret=x":          `"secret"`,
		"s3://results?region=a&region=b": "region",
		"s3://results?path_style=maybe":  "path_style",
		"s3://results?read_only=":        "read_only",
		"s3://results?endpoint=ftp://h":  "Endpoint",
		"s3://results?a=%zz":             "query",
		"s3://results?endpoint=http://user:hunter2@h:1": "Endpoint",
	} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			_, err := storage.ParseS3URL(address)
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Fatalf("ParseS3URL = %v, want an error with %q", err, word)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error contains the password: %v", err)
			}
		})
	}
}

func FuzzParseS3URL(f *testing.F) {
	f.Add("s3://bucket/prefix?endpoint=http://localhost:7070&region=eu-west-1&path_style=true")
	f.Add("s3://u:p@bucket/%2e%2e/a?x")
	f.Fuzz(func(t *testing.T, address string) {
		config, err := storage.ParseS3URL(address)
		if err != nil {
			return
		}
		if err := config.Validate(); err != nil {
			t.Errorf("invalid result: %v", err)
		}
		if config.Prefix != "" {
			must(t, storage.CheckKey(config.Prefix))
		}
	})
}
