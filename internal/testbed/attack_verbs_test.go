package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/anishathalye/porcupine"

	"ddiff/api"
	"ddiff/internal/record"
	"ddiff/restore/item"
)

// asked is a request of a client, told its answer.
type (
	asked struct {
		campaign int
		verb     string // submit, read, delete, or a wanted state
	}
	told struct {
		// known: the request has had its effect; without it, it may have one at any time.
		known, refused, missing, created bool
		wanted                           record.Wanted
		cancelled                        bool // the phase
	}
	// known to the model about a campaign.
	register struct {
		exists    bool
		wanted    record.Wanted
		cancelled bool // the leader has cancelled it, as wanted
	}
)

// later returns the states in which a leader may have left a campaign since.
func (r register) later() []any {
	next := r
	next.cancelled = r.wanted == record.WantCancel
	if r.exists && next != r {
		return []any{r, next}
	}
	return []any{r}
}

// after returns the states in which a request with an answer may leave a campaign; none if it cannot have this answer.
func (r register) after(in asked, out told) []any {
	unchanged := []any{r}
	permit := func(ok bool, next register) []any {
		switch {
		case !out.known && ok:
			return []any{r, next}
		case !out.known:
			return unchanged
		case ok:
			return []any{next}
		}
		return nil
	}
	switch {
	case out.missing:
		return permit(!r.exists, r)
	case out.refused && in.verb == string(record.WantPause):
		return permit(r.exists && r.cancelled, r)
	case out.refused: // while it is deleted
		return unchanged
	}
	switch in.verb {
	case "read":
		return permit(r.exists && r.wanted == out.wanted && r.cancelled == out.cancelled, r)
	case "submit":
		fresh := register{exists: true, wanted: record.WantRun}
		if out.known && !out.created {
			return permit(r.exists && r.wanted == out.wanted, r)
		}
		return permit(!r.exists, fresh)
	case "delete":
		return permit(r.exists && r.cancelled, register{})
	}
	next := r
	next.wanted = record.Wanted(in.verb)
	return permit(r.exists, next)
}

// verbsModel is the specification: one register for each campaign.
func verbsModel() porcupine.Model {
	model := porcupine.NondeterministicModel{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			parts := make([][]porcupine.Operation, verbCampaigns)
			for _, op := range history {
				n := op.Input.(asked).campaign
				parts[n] = append(parts[n], op)
			}
			return parts
		},
		Init: func() []any { return []any{register{}} },
		Step: func(state, input, output any) []any {
			var all []any
			for _, before := range state.(register).later() {
				for _, after := range before.(register).after(input.(asked), output.(told)) {
					all = append(all, after.(register).later()...)
				}
			}
			return all
		},
		Equal:             func(a, b any) bool { return a == b },
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v → %+v", in, out) },
		DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
	}
	return model.ToModel()
}

const (
	verbClients   = 5
	verbCampaigns = 8
	// verbLate is the time after its begin in which a request without an answer may have its effect: that of the client, and of a
	// coordinator that has not noticed the end of the request.
	verbLate = time.Minute
	// verbStale is the age of what a coordinator reads at a server that is cut off from the others.
	verbStale = 15 * time.Second
)

// verbClient sends verbs through one coordinator.
type verbClient struct {
	http  *api.Client
	files []string // of the campaigns
	ids   []string
}

// ask sends a verb. The answer is unknown if no coordinator has answered.
func (v *verbClient) ask(ctx context.Context, in asked) (out told) {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	id := v.ids[in.campaign]
	var err error
	switch in.verb {
	case "read":
		var s record.CampaignStatus
		if s, err = v.http.Campaign(ctx, id); err == nil {
			out.wanted, out.cancelled = s.Campaign.Wanted, s.Campaign.Phase == record.PhaseCancelled
		}
	case "submit":
		var data []byte
		if data, err = os.ReadFile(v.files[in.campaign]); err == nil {
			var made api.Submitted
			made, err = v.http.Submit(ctx, data, api.Order{})
			out.created, out.wanted = made.Created, made.Wanted
		}
	case "delete":
		_, err = v.http.Delete(ctx, id, false, false)
	case "retry":
		_, err = v.http.Retry(ctx, id, "", api.Retry{Outcomes: []item.Outcome{item.OutcomeDead}})
	default:
		_, err = v.http.Want(ctx, id, record.Wanted(in.verb))
	}
	switch {
	case err == nil, errors.Is(err, syscall.ECONNREFUSED):
		out.known = err == nil
	case errors.Is(err, api.ErrRefused) && !strings.Contains(err.Error(), "replaced"):
		out = told{known: true, refused: in.verb != string(record.WantPause) || strings.Contains(err.Error(), "is cancelled")}
		out.known = out.refused
	case errors.Is(err, api.ErrNotFound):
		out = told{known: true, missing: true}
	default:
		out = told{}
	}
	return out
}

// TestAttackVerbs sends verbs by five clients through three coordinators, of which the leader is killed and each is separated from the
// others with its NATS server. The answers are those of one register for each campaign: no verb that has succeeded is lost, and none is
// undone by an older one. What is read may be some seconds old.
func TestAttackVerbs(t *testing.T) {
	onlyBy(t, "make attacks", "DDIFF_ATTACKS")
	during := time.Minute
	if s := os.Getenv("DDIFF_VERBS"); s != "" {
		var err error
		during, err = time.ParseDuration(s)
		must(t, err)
	}
	c := startCluster(t, Options{Directory: true, NATS: NATSOptions{Servers: 3}})
	all := newPaths(t, c)
	var clients []*verbClient
	var addresses []string
	for i := range c.NATS.Servers {
		address := listening(t)
		addresses = append(addresses, "http://"+address)
		p := c.NewCoordinator("--nats-wait", "30s", "--listen", address, "--require-tokens")
		p.env = append(p.env, "DDIFF_NATS_URL=nats://"+c.NATS.clients[i])
		must(t, p.Start())
		must(t, p.WaitLog(t.Context(), " is ready"))
	}
	secret := c.token(t.Context(), t, "admin")
	for i := range verbClients {
		v := &verbClient{}
		var err error
		v.http, err = api.NewClient(api.ClientConfig{URL: addresses[i%3], Token: secret})
		must(t, err)
		clients = append(clients, v)
	}
	for n := range verbCampaigns {
		name := fmt.Sprintf("verbs-%d", n)
		dir := t.TempDir()
		file, err := writeCampaign(dir, name, 20)
		must(t, err)
		made, err := clients[0].http.Submit(t.Context(), read(t, file), api.Order{})
		must(t, err)
		_, err = clients[0].http.Want(t.Context(), made.ID, record.WantCancel)
		must(t, err)
		for _, v := range clients {
			v.files, v.ids = append(v.files, filepath.Join(dir, name+".yaml")), append(v.ids, made.ID)
		}
		for clients[0].ask(t.Context(), asked{n, "delete"}) != (told{known: true}) { // each history begins without the campaign
			sleep(t.Context(), 200*time.Millisecond)
		}
	}
	begin := time.Now()
	var mu sync.Mutex
	var history []porcupine.Operation
	var beside sync.WaitGroup
	ctx, stop := context.WithTimeout(t.Context(), during)
	defer stop()
	for i, v := range clients {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		beside.Go(func() {
			for ctx.Err() == nil {
				verbs := []string{"read", "read", "submit", "delete", "retry", "pause", "pause", "run", "run", "cancel", "cancel"}
				in := asked{random.IntN(verbCampaigns), verbs[random.IntN(len(verbs))]}
				call := time.Since(begin).Nanoseconds()
				out := v.ask(t.Context(), in)
				op := porcupine.Operation{ClientId: i, Input: in, Call: call, Output: out, Return: time.Since(begin).Nanoseconds()}
				if !out.known {
					op.Return = call + verbLate.Nanoseconds()
				}
				if in.verb == "read" {
					op.Call = max(0, call-verbStale.Nanoseconds())
				}
				mu.Lock()
				history = append(history, op)
				mu.Unlock()
				sleep(ctx, time.Duration(20+random.IntN(150))*time.Millisecond)
			}
		})
	}
	divide(ctx, t, c, all)
	beside.Wait()
	checkHistory(t, history)
}

// divide separates one server after the other, and kills the leader after each time, until ctx ends. All is whole again then.
func divide(ctx context.Context, t *testing.T, c *Cluster, all paths) {
	t.Helper()
	for round := 0; ctx.Err() == nil; round++ {
		cut := round % 3
		if leader, err := c.NATS.StreamLeader(ctx, "KV_DDIFF_BOARD"); err == nil && round%2 == 0 {
			cut = leader
		}
		all.each(cut, func(p *toxiproxy.Proxy) {
			for _, stream := range []string{"upstream", "downstream"} {
				must(t, addToxic(p, "timeout", stream, `{"timeout": 0}`))
			}
		})
		sleep(ctx, 14*time.Second)
		all.each(cut, func(p *toxiproxy.Proxy) {
			for _, stream := range []string{"upstream", "downstream"} {
				must(t, p.Toxics.RemoveToxic(t.Context(), "timeout-"+stream))
			}
		})
		sleep(ctx, 3*time.Second)
		if leader, err := c.Leader(ctx); err == nil {
			leader.Kill()
			sleep(ctx, time.Second)
			must(t, leader.Start())
		}
		sleep(ctx, 3*time.Second)
	}
}

// checkHistory fails if a history is not linearizable. It logs how many requests of each kind had which answers.
func checkHistory(t *testing.T, history []porcupine.Operation) {
	t.Helper()
	counts := map[string]int{}
	var certain []porcupine.Operation
	for _, op := range history {
		in, out := op.Input.(asked), op.Output.(told)
		answer := "unknown"
		switch {
		case out.missing:
			answer = "missing"
		case out.refused:
			answer = "refused"
		case out.known:
			answer = "ok"
		}
		counts[in.verb+" "+answer]++
		if in.verb == "retry" || !out.known && in.verb == "read" {
			continue // it changes no state
		}
		certain = append(certain, op)
	}
	t.Logf("%d requests: %v", len(history), counts)
	model := verbsModel()
	for n, part := range model.Partition(certain) {
		result := porcupine.CheckOperationsTimeout(model, part, time.Minute)
		if result == porcupine.Ok {
			continue
		}
		t.Errorf("the history of campaign %d is not linearizable: %s", n, result)
		slices.SortFunc(part, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
		for _, op := range part {
			t.Logf("%8.3f to %8.3f s, client %d: %s", time.Duration(op.Call).Seconds(), time.Duration(op.Return).Seconds(), op.ClientId, model.DescribeOperation(op.Input, op.Output))
		}
	}
}
