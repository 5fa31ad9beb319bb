package testbed

import (
	"crypto/tls"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/storage"
)

// requireCertificates makes programs reach the store through a server that requires certificates of clients, as versitygw cannot.
func requireCertificates(t *testing.T, c *Cluster) {
	t.Helper()
	own, err := c.S3.Authority.Issue("front", time.Now().Add(time.Hour))
	must(t, err)
	pair, err := tls.LoadX509KeyPair(own.Cert, own.Key)
	must(t, err)
	clients, err := storage.Authorities(c.S3.Authority.File)
	must(t, err)
	transport, err := c.S3.transport()
	must(t, err)
	front := httptest.NewUnstartedServer(&httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "https", Host: c.S3.Address})
		r.Out.Host, r.Out.URL.Path = r.In.Host, r.In.URL.Path // parts of the signature
	}})
	front.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients, MinVersion: tls.VersionTLS12}
	front.StartTLS()
	t.Cleanup(front.Close)
	c.S3.Client, err = c.S3.Authority.Issue("client", time.Now().Add(time.Hour))
	must(t, err)
	c.Through(front.Listener.Addr().String())
}

// TestOperateTLS runs a cluster whose NATS servers and store use certificates of own authorities, and require those of clients. Every command that opens the store works with them, and ends with one line and its code without.
func TestOperateTLS(t *testing.T) {
	t.Parallel()
	onlyBy(t, "make operate-test", "DDIFF_OPERATE")
	c := startCluster(t, Options{SecureS3: true, NATS: NATSOptions{Secure: true, Mutual: true}})
	requireCertificates(t, c)
	must(t, c.PutImages(t.Context(), map[string][]byte{"a.png": read(t, photograph("chelsea"))}))
	file := filepath.Join(t.TempDir(), "tls.yaml")
	write(t, file, []byte("name: tls\ndataset: {path: \""+c.Images()+"\", size: 64}\ntasks: [hdr]\nsteps: 2\n"))
	coordinator(t, c)
	worker(t, c)
	var id string
	steps := []step{{"campaign", func(t *testing.T) {
		id = submit(t, c, file)
		wantFinished(t, c, id, 1)
	}}}
	copied := filepath.Join(t.TempDir(), "copy")
	const store = 6
	for _, v := range []string{
		"pull OUTPUT COPY", "verify OUTPUT", "report OUTPUT", "score OUTPUT", "replay OUTPUT", "compare OUTPUT OUTPUT", "gc --store STORE",
	} {
		name, _, _ := strings.Cut(v, " ")
		steps = append(steps, step{name, func(t *testing.T) {
			output := strings.Replace(c.Store(), "?", "/"+id+"?", 1)
			args := strings.Fields(v)
			for i := range args {
				args[i] = strings.NewReplacer("OUTPUT", output, "COPY", copied, "STORE", c.Store()).Replace(args[i])
			}
			without := func(is func(name string) bool) {
				t.Helper()
				cmd := c.Command(t.Context(), args...)
				cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool {
					name, _, _ := strings.Cut(v, "=")
					return is(name)
				})
				if e := end(t, cmd); e.code != store || !strings.Contains(e.stderr, "certificate") {
					t.Errorf("want exit code %d and a line about the certificate: %v", store, e)
				}
			}
			without(func(name string) bool { return name == "AWS_CA_BUNDLE" })
			without(func(name string) bool { return strings.HasPrefix(name, "DDIFF_S3_") }) // the client's
			wantCode(t, ask(t, c, args...), 0)
		}})
	}
	for _, role := range []string{"coordinator", "worker"} {
		steps = append(steps, step{role + " without authorities", func(t *testing.T) {
			p := c.NewCoordinator()
			if role == "worker" {
				p = c.NewWorker("--simulate", "1ms")
			}
			p.env = slices.DeleteFunc(p.env, func(v string) bool { return strings.HasPrefix(v, "AWS_CA_BUNDLE=") })
			must(t, p.Start())
			<-p.Exited()
			if p.Code() != store || !strings.Contains(p.Log(), "certificate") {
				t.Errorf("exit code %d, want %d: %s", p.Code(), store, p.Log())
			}
		}})
	}
	takeSteps(t, steps)
}
