package testbed

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOperateTLS runs a cluster whose NATS servers and store use certificates of own authorities, and whose NATS servers require those of
// clients. Every command works with the authorities, and ends with one line and its code without them.
func TestOperateTLS(t *testing.T) {
	t.Parallel()
	operating(t)
	c := startCluster(t, Options{SecureS3: true, NATS: NATSOptions{Secure: true, Mutual: true}})
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
		{nats, "list --all"}, {nats, "status ID"}, {nats, "workers"}, {nats, "logs ID"}, {nats, "retry ID --list"}, {nats, "retry ID --missing"},
		{nats, "submit FILE --output other"}, {nats, "pause ID"}, {nats, "resume ID"}, {nats, "cancel ID"},
		{store, "pull OUTPUT COPY"}, {store, "verify OUTPUT"}, {store, "report OUTPUT"}, {store, "score OUTPUT"}, {store, "replay OUTPUT"},
		{store, "compare OUTPUT OUTPUT"}, {nats, "gc"}, {nats, "delete ID --results --yes"},
	} {
		name, _, _ := strings.Cut(v.args, " ")
		steps = append(steps, step{name, func(t *testing.T) {
			output := strings.Replace(c.S3.Store(Bucket, ""), "?", "/"+id+"?", 1)
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
		cmd := c.Command(t.Context(), "list")
		cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool {
			return strings.HasPrefix(v, "DDIFF_NATS_CERT=") || strings.HasPrefix(v, "DDIFF_NATS_KEY=")
		})
		if e := end(t, cmd); e.code != nats || !strings.Contains(e.stderr, "certificate") {
			t.Errorf("want exit code %d and a line about the certificate: %v", nats, e)
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
