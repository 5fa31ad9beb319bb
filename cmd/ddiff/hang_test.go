package main_test

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ddiff/internal/regular"
	"ddiff/manifest"
	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxtest"
)

// endlessPrior returns the bytes of a score model that loops without end, but at the time at which a new prior is verified.
func endlessPrior(t *testing.T) []byte {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, -1, 3, -1, -1)
	const verified = 1000 / 2 // of the schedule in card
	at := g.Input("t", onnx.Int64, -1)
	at.Dims = []int{1} // of a batch of one
	distance := g.Add(at, g.Ints(-verified))
	final, _ := g.Loop(g.Mul(g.Mul(distance, distance), g.Ints(1<<40)), []onnx.Value{x}, func(b *onnx.Graph, _ onnx.Value, s []onnx.Value) (next, collect []onnx.Value) {
		return []onnx.Value{b.Mul(s[0], b.Scalar(0.5))}, nil
	})
	g.Output("eps", final[0])
	data, err := g.Marshal("endless")
	must(t, err)
	return onnxtest.WithMetadata(t, data, card(3))
}

// measured identifies the span that ends before the solver starts.
const measured = `"Name":"measure"`

// A run with a prior that loops without end closes its output and ends with the exit code of a hang.
func TestRunEndsAfterHang(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, out := filepath.Join(dir, "endless.onnx"), filepath.Join(dir, "out")
	write(t, file, endlessPrior(t))
	args := []string{"--images", photograph("coffee"), "--task", "hdr", "--prior", file, "--out", out, "--stage-timeout", "solve=300ms"}
	e := restore(t, args...)
	wantCode(t, e, 10)
	wantMessage(t, e, "ddiff: the worker hung: stage solve took", "its limit is 300ms", "raise --stage-timeout")
	if !strings.Contains(e.stdout, "done=0 failed=0 dead=0 pending=1 out="+out) {
		t.Errorf("the counts are missing\n%v", e)
	}
	wantCode(t, restore(t, args...), 10) // nothing is locked or damaged
}

// The first SIGINT ends a run whose prior loops without end.
func TestInterruptEndsHang(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "endless.onnx")
	write(t, file, endlessPrior(t))
	p := begin(t, "--images", photograph("coffee"), "--task", "hdr", "--prior", file, "--out", filepath.Join(dir, "out"))
	p.wait(t, &p.stdout, measured, 1)
	begun := time.Now()
	p.signal(t, syscall.SIGINT)
	e := p.end()
	wantCode(t, e, 130)
	wantMessage(t, e, "interrupted a stage", "stage=solve")
	if took := time.Since(begun); took > limit/4 {
		t.Errorf("the run ended %v after the signal", took)
	}
}

// endlessCampaign submits a campaign of one item whose prior loops without end. It returns the campaign's record.
func (n *natsServer) endlessCampaign(t *testing.T, store string) manifest.Campaign {
	t.Helper()
	data, item := endlessPrior(t), longItem(t)
	file := manifest.PriorFile{SHA256: regular.SHA256(data), Key: "priors/endless.onnx"}
	must(t, os.Mkdir(filepath.Join(store, "priors"), 0o755))
	write(t, filepath.Join(store, file.Key), data)
	item.Prior = file.SHA256
	must(t, item.Identify())
	n.campaign(t, "endless", item)
	c := manifest.Campaign{
		Schema: manifest.RecordSchema, ID: "endless", Output: "endless", Priority: manifest.PriorityNormal, Weight: 1,
		Wanted: manifest.WantRun, Phase: manifest.PhaseRunning, Prior: file,
	}
	n.put(t, manifest.KeyCampaignPrefix+c.ID, c)
	return c
}

// freeAddress returns an address of this machine that was free a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

// An immediate cancellation frees a worker whose prior loops without end; the worker continues, and is healthy.
func TestCancelFreesHungWorker(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	n := startNATS(t, store)
	c := n.endlessCampaign(t, store)
	address := freeAddress(t)
	w := beginWorker(t, "--nats", n.url, "--name", "first", "--health-listen", address)
	w.wait(t, &w.stdout, measured, 1)
	c.Wanted = manifest.WantCancelNow
	n.put(t, manifest.KeyCampaignPrefix+c.ID, c)
	w.wait(t, &w.stderr, "dropped item of a cancelled campaign", 1)
	if code, text := ask(t, address, "/livez"); code != http.StatusOK {
		t.Errorf("/livez answers %d: %s", code, text)
	}
	w.signal(t, syscall.SIGTERM)
	wantCode(t, w.end(), 0)
}

// A worker whose stage exceeds its limit ends with the exit code of a hang, and the item is dead after its only attempt.
func TestWorkerEndsAfterHang(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	n := startNATS(t, store)
	n.endlessCampaign(t, store)
	w := beginWorker(t, "--nats", n.url, "--name", "first", "--stage-timeout", "solve=300ms")
	e := w.end()
	wantCode(t, e, 10)
	wantMessage(t, e, "an item hung", "stage solve took")
	wantMessage(t, e, "ddiff: the worker hung", "raise --stage-timeout")
	data, _, err := n.board.Get(t.Context(), manifest.KeyWorkerPrefix+"first")
	must(t, err)
	var beat manifest.Beat
	must(t, json.Unmarshal(data, &beat))
	if !strings.Contains(beat.Hung, "stage solve took") {
		t.Errorf("the worker's record is %+v", beat)
	}
	for l, err := range n.queue("endless").DeadLetters(t.Context()) {
		must(t, err)
		if !strings.Contains(l.Reason, "stage solve took") {
			t.Errorf("the item is dead: %q", l.Reason)
		}
		return
	}
	t.Error("the item is not dead")
}
