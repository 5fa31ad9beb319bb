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

// TestOperateTLS runs a cluster whose NATS servers and store use certificates of own authorities, and require those of clients. Every command works with the authorities, and ends with one line and its code without them.
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
	const nats, store = 9, 6
	for _, v := range []struct {
		without int // exit code without the authorities
		args    string
	}{
		{nats, "list --all"}, {nats, "status ID"}, {nats, "workers"}, {nats, "logs ID"}, {nats, "retry ID --dead"}, {nats, "retry ID --missing"},
		{nats, "submit FILE --output other"}, {nats, "pause ID"}, {nats, "resume ID"}, {nats, "cancel ID"},
		{store, "pull OUTPUT COPY"}, {store, "verify OUTPUT"}, {store, "report OUTPUT"}, {store, "score OUTPUT"}, {store, "replay OUTPUT"},
		{store, "compare OUTPUT OUTPUT"}, {nats, "gc"}, {nats, "delete ID --results --yes"},
	} {
		name, _, _ := strings.Cut(v.args, " ")
		steps = append(steps, step{name, func(t *testing.T) {
			output := strings.Replace(c.Store(), "?", "/"+id+"?", 1)
			args := strings.Fields(v.args)
			for i := range args {
				args[i] = strings.NewReplacer("ID", id, "FILE", file, "OUTPUT", output, "COPY", copied).Replace(args[i])
			}
			cmd := c.Command(t.Context(), args...)
			cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool {
				return strings.HasPrefix(v, "DDIFF_NATS_CA=") || strings.HasPrefix(v, "AWS_CA_BUNDLE=")
			})
			e := end(t, cmd)
			if e.code != v.without || !strings.Contains(e.stderr, "certificate") {
				t.Errorf("without the authorities: want exit code %d and a line about the certificate: %v", v.without, e)
			}
			// A campaign that has ended cannot be paused or cancelled: the answer comes from the cluster all the same.
			if e := ask(t, c, args...); e.code != 0 && !strings.Contains(e.stderr, "finished") {
				t.Errorf("%v", e)
			}
		}})
	}
	steps = append(steps, step{"no certificate of the client", func(t *testing.T) {
		for code, args := range map[int][]string{nats: {"list"}, store: {"verify", c.Store()}} {
			cmd := c.Command(t.Context(), args...)
			cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool {
				name, _, _ := strings.Cut(v, "=")
				return strings.HasSuffix(name, "_CERT") || strings.HasSuffix(name, "_KEY") && strings.HasPrefix(name, "DDIFF_")
			})
			if e := end(t, cmd); e.code != code || !strings.Contains(e.stderr, "certificate") {
				t.Errorf("want exit code %d and a line about the certificate: %v", code, e)
			}
		}
	}})
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
