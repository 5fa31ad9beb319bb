package storage

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"ddiff/internal/redact"
)

// ParseS3URL parses an address such as
//
//	s3://bucket/prefix?endpoint=http://localhost:7070&region=eu-west-1&path_style=true
//
// The parameters of the query are optional: endpoint, region, path_style (true or false; default automatic), ca_file
// and read_only (true or false). Credentials are refused. The result is valid.
func ParseS3URL(address string) (S3Config, error) {
	u, err := url.Parse(address)
	if err != nil {
		// The error of url.Parse repeats the address, which may contain a password.
		return S3Config{}, errors.New("s3 address: not a URL; write s3://bucket/prefix")
	}
	if u.User != nil {
		return S3Config{}, errors.New("s3 address: URL contains credentials; set them in the environment or the credentials file")
	}
	if u.Scheme != "s3" {
		return S3Config{}, fmt.Errorf("s3 address %q: scheme is not s3://", redact.Address(address))
	}
	if u.Fragment != "" {
		return S3Config{}, fmt.Errorf("s3 address %q: '#' is not allowed; write %%23", redact.Address(address))
	}
	config := S3Config{Bucket: u.Host, Prefix: strings.TrimSuffix(strings.TrimPrefix(u.Path, "/"), "/")}
	if err := config.readQuery(u.RawQuery); err != nil {
		return S3Config{}, fmt.Errorf("s3 address of bucket %q: %w", u.Host, err)
	}
	if err := config.Validate(); err != nil {
		return S3Config{}, fmt.Errorf("s3 address: %w", err)
	}
	return config, nil
}

func (c *S3Config) readQuery(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("query: a character is not encoded; write % as %25") // the error of net/url repeats the text
	}
	for name, list := range values {
		if len(list) > 1 {
			return fmt.Errorf("parameter %s occurs %d times", name, len(list))
		}
		value := list[0]
		switch name {
		case "endpoint":
			c.Endpoint = value
		case "region":
			c.Region = value
		case "ca_file":
			c.CAFile = value
		case "path_style":
			path, err := strconv.ParseBool(value)
			if err != nil {
				return fmt.Errorf("parameter path_style: %q is neither true nor false", value)
			}
			c.Addressing = AddressingVirtualHost
			if path {
				c.Addressing = AddressingPath
			}
		case "read_only":
			if c.ReadOnly, err = strconv.ParseBool(value); err != nil {
				return fmt.Errorf("parameter read_only: %q is neither true nor false", value)
			}
		default:
			return fmt.Errorf("parameter %q is unknown; use endpoint, region, path_style, ca_file or read_only", name)
		}
	}
	return nil
}
