package storage

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"ddiff/internal/outbound"
	"ddiff/internal/regular"
)

// The time limit and the probes of connections.
const (
	dialTimeout = 10 * time.Second
	keepAlive   = 30 * time.Second
)

// newClient returns a client of the configured server, and its transport. The client never retries a request; S3 does,
// with an attempt id for Create.
func newClient(ctx context.Context, config S3Config) (*minio.Core, *http.Transport, error) {
	endpoint, err := parseEndpoint(config.Endpoint)
	if err != nil {
		return nil, nil, fmt.Errorf("field Endpoint: %w", err)
	}
	transport, err := newTransport(config.CAFile)
	if err != nil {
		return nil, nil, err
	}
	if config.CertFile != "" || config.KeyFile != "" {
		if _, err := config.certificate(nil); err != nil {
			return nil, nil, err
		}
		transport.TLSClientConfig.GetClientCertificate = config.certificate
	}
	if config.Control != nil {
		transport.Proxy = nil
		transport.DialContext = (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive, Control: config.Control}).DialContext
	}
	if config.dial != nil {
		transport.DialContext = config.dial
	}
	keys, err := findCredentials(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	core, err := minio.NewCore(endpoint.Host, &minio.Options{
		Creds:        keys,
		Secure:       endpoint.Scheme == "https",
		Transport:    listings{transport},
		Region:       config.Region,
		BucketLookup: config.Addressing,
		MaxRetries:   1,
	})
	return core, transport, err
}

// newTransport returns a transport that trusts the authorities of the system and of caFile.
func newTransport(caFile string) (*http.Transport, error) {
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		MaxIdleConnsPerHost:   maxRequests,
		IdleConnTimeout:       time.Minute,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true, // gzip objects are returned as stored
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if caFile == "" {
		return transport, nil
	}
	pool, err := Authorities(caFile)
	if err != nil {
		return nil, err
	}
	transport.TLSClientConfig.RootCAs = pool
	return transport, nil
}

func (c S3Config) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	pair, err := regular.KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("fields CertFile and KeyFile: %w", err)
	}
	return pair, nil
}

const maxAuthorities = 16 << 20

// Authorities returns the certificate authorities of the system and of a PEM file. The error names the field CAFile.
func Authorities(caFile string) (*x509.CertPool, error) {
	pem, err := regular.Read(caFile, maxAuthorities)
	if err != nil {
		return nil, fmt.Errorf("field CAFile: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // the system has no authorities
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("field CAFile: %s contains no PEM certificate", caFile)
	}
	return pool, nil
}

// provider provides keys, which it reads again when they have expired. If it cannot, a request fails with ErrUnavailable instead of being
// sent without a signature, as that of credentials.Chain would be.
type provider struct{ credentials.Provider }

// RetrieveWithCredContext implements credentials.Provider.
func (p provider) RetrieveWithCredContext(c *credentials.CredContext) (credentials.Value, error) {
	keys, err := p.Provider.RetrieveWithCredContext(c)
	if err == nil && keys.AccessKeyID == "" {
		err = errors.New("there are none")
	}
	if err != nil {
		err = fmt.Errorf("%w: read the keys again: %w", ErrUnavailable, err)
	}
	return keys, err
}

// maxKeys is the largest answer of a server of keys in bytes.
const maxKeys = 1 << 20

// findCredentials returns the configured keys, or the first keys of the chain in the comment of S3Config.
func findCredentials(ctx context.Context, config S3Config) (*credentials.Credentials, error) {
	if config.AccessKey != "" {
		return credentials.NewStaticV4(config.AccessKey, config.SecretKey, ""), nil
	}
	providers := []credentials.Provider{
		&credentials.EnvAWS{}, &credentials.EnvMinio{}, &credentials.FileAWSCredentials{},
	}
	client := outbound.Client(nil, maxKeys) // it sends the tokens of a pod or machine
	client.Timeout = 5 * time.Second
	if queryRole() {
		providers = append(providers, &credentials.IAM{Client: client})
	}
	for _, p := range providers {
		keys := credentials.New(provider{p})
		if _, err := keys.GetWithContext(&credentials.CredContext{Client: client, Context: ctx}); err == nil {
			return keys, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	if config.ReadOnly {
		return credentials.NewStaticV4("", "", ""), nil
	}
	return nil, fmt.Errorf("%w: %w", ErrAccess, errors.New("no credentials found; set AWS_ACCESS_KEY_ID and "+
		"AWS_SECRET_ACCESS_KEY, or name a profile of the credentials file in AWS_PROFILE"))
}

// queryRole reports whether to query for a role. AWS_EC2_METADATA_DISABLED disables the role of the machine, but not
// the roles of pods and containers.
func queryRole() bool {
	return os.Getenv("AWS_EC2_METADATA_DISABLED") != "true" || cmp.Or(
		os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE"),
		os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI"),
		os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
	) != ""
}
