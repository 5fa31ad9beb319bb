package storage_test

import (
	"crypto/tls"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"ddiff/storage"
)

// TestOpenS3ClientCertificate: a server that requires certificates of clients answers one with a certificate of its authority only.
func TestOpenS3ClientCertificate(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	certFile, keyFile := ca.issue(t, "127.0.0.1", time.Now().Add(time.Hour))
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	must(t, err)
	authorities, err := storage.Authorities(ca.file)
	must(t, err)
	config := startS3(t)
	behind, err := url.Parse(config.Endpoint)
	must(t, err)
	front := httptest.NewUnstartedServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(behind)
		r.Out.Host, r.Out.URL.Path = r.In.Host, r.In.URL.Path // parts of the signature
	}})
	front.TLS = &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authorities, MinVersion: tls.VersionTLS12,
	}
	front.StartTLS()
	t.Cleanup(front.Close)

	config.Endpoint, config.CAFile = front.URL, ca.file
	wantOpenError(t, config, storage.ErrAccess, "certificate required", "DDIFF_S3_CERT")
	config.CertFile, config.KeyFile = ca.issue(t, "127.0.0.1", time.Now().Add(time.Hour))
	s := openS3(t, config)
	must(t, s.Create(t.Context(), "k", []byte("x")))
	wantGet(t, s, "k", []byte("x"))
	config.KeyFile = filepath.Join(t.TempDir(), "missing.pem")
	wantOpenError(t, config, nil, "KeyFile", "missing.pem")
}
