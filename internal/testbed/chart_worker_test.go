package testbed

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// chartPod is the pod of a container in a stored rendering of the Helm chart, which internal/charttest compares with the chart.
type chartPod struct {
	TerminationGracePeriodSeconds int64 `yaml:"terminationGracePeriodSeconds"`
	Containers                    []struct {
		Name string   `yaml:"name"`
		Args []string `yaml:"args"`
	} `yaml:"containers"`
}

// renderedPod returns the pod of a container in a rendering.
func renderedPod(t *testing.T, rendering, container string) chartPod {
	t.Helper()
	data := read(t, filepath.Join(root, "internal", "charttest", "testdata", "rendered", rendering+".yaml"))
	_, text, _ := strings.Cut(string(data), "\n---\n") // without the notes
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		type template struct {
			Spec chartPod `yaml:"spec"`
		}
		var object struct {
			Spec struct {
				chartPod     `yaml:",inline"`
				Template     template `yaml:"template"`
				JobTargetRef struct {
					Template template `yaml:"template"`
				} `yaml:"jobTargetRef"`
			} `yaml:"spec"`
		}
		if err := decoder.Decode(&object); err != nil {
			t.Fatalf("%s has no container %s: %v", rendering, container, err)
		}
		for _, pod := range []chartPod{object.Spec.chartPod, object.Spec.Template.Spec, object.Spec.JobTargetRef.Template.Spec} {
			if len(pod.Containers) == 1 && pod.Containers[0].Name == container {
				return pod
			}
		}
	}
}

// TestChartScaleDown stops workers under load as Kubernetes does, with the flags and the grace period of the chart: SIGTERM, and
// SIGKILL at the end of the period. Nothing is lost, and the results are those of an undisturbed run.
func TestChartScaleDown(t *testing.T) {
	skipLong(t)
	t.Parallel()
	pod := renderedPod(t, "gke-spot", "worker") // the shortest period of the examples
	period := time.Duration(pod.TerminationGracePeriodSeconds) * time.Second
	var grace string
	for _, argument := range pod.Containers[0].Args {
		if strings.HasPrefix(argument, "--grace=") {
			grace = argument
		}
	}
	if grace == "" || period < time.Second {
		t.Fatalf("the worker of the chart has %q and a period of %v", grace, period)
	}
	const steps = "steps: 150" // an item takes longer than a worker needs to react
	file := campaignFile(t, "scale-down", steps)
	reference := t.TempDir()
	run := command(t, "run", file, "--out", reference, "--device", "cpu", "--threads", "1", "--quiet")
	wantCode(t, end(t, run), 0)

	c := startCluster(t, Options{Directory: true})
	lags := lagOf(t, c)
	flags := []string{grace, "--batch", "1"}
	worker(t, c, flags...)
	id := submit(t, c, file, "--canary", "0", "--output", "out")
	lags(func(all []int) bool { return len(all) == 1 && all[0] > 0 })
	for n := range 3 {
		settled(t, c, "out", c.Settled("out")+1) // the worker has begun: one before it may have finished two items
		old := c.Workers[n]
		begin := time.Now()
		code, err := old.Stop(period)
		if err != nil || code != 0 {
			t.Fatalf("exit code %d after %v of %v: %v\n%s", code, time.Since(begin), period, err, old.Log())
		}
		if !strings.Contains(old.Log(), "released item") {
			t.Fatalf("%s had no item when it was stopped:\n%s", old.Name, old.Log())
		}
		worker(t, c, flags...)
	}
	// A worker that cannot react is killed at the end of the period; its lease ends.
	settled(t, c, "out", c.Settled("out")+1)
	last := c.Workers[3]
	must(t, last.Signal(syscall.SIGSTOP))
	worker(t, c, flags...)
	if _, err := last.Stop(period); err == nil {
		t.Fatal("a suspended worker has ended by itself")
	}
	wantFinished(t, c, id, 6)
	lags(func(all []int) bool { return len(all) == 1 && all[0] == 0 })
	difference, err := Compare(reference, c.Results("out"))
	if err == nil {
		err = difference.Err()
	}
	if err != nil || difference.Items != 6 {
		t.Errorf("%d items: %v", difference.Items, err)
	}
}

// lagOf starts two coordinators and returns a function that reads the metric of the chart's scaler from both, as KEDA does,
// until check accepts the values. Only the leader has one.
func lagOf(t *testing.T, c *Cluster) func(check func(all []int) bool) {
	t.Helper()
	var addresses []string
	for range 2 {
		address, err := FreeAddress(t.Context())
		must(t, err)
		addresses = append(addresses, address)
		_, err = c.AddCoordinator(t.Context(), "--nats-wait", "30s", "--metrics-listen", address)
		must(t, err)
	}
	value := regexp.MustCompile(`(?m)^ddiff_queue_lag(?:\{[^}]*\})? (\d+)$`)
	return func(check func(all []int) bool) {
		t.Helper()
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		deadline := time.Now().Add(commandLimit)
		for {
			var all []int
			for _, address := range addresses {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", http.NoBody)
				must(t, err)
				response, err := http.DefaultClient.Do(request)
				must(t, err)
				page, err := io.ReadAll(response.Body)
				must(t, errors.Join(err, response.Body.Close()))
				for _, found := range value.FindAllSubmatch(page, -1) {
					n, err := strconv.Atoi(string(found[1]))
					must(t, err)
					all = append(all, n)
				}
			}
			if check(all) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("the coordinators have the lags %v", all)
			}
			<-tick.C
		}
	}
}

// TestChartItem runs the script of the pod of `helm test` twice: each run is a campaign of its own with one restored item.
func TestChartItem(t *testing.T) {
	t.Parallel()
	script := renderedPod(t, "minimal", "item").Containers[0].Args[0]
	if !strings.Contains(script, " /tmp/campaign.yaml ") || !strings.Contains(script, "/etc/ddiff/test/image.png") {
		t.Fatalf("unexpected script:\n%s", script)
	}
	dir := t.TempDir()
	script = strings.NewReplacer("/tmp/", dir+"/", "/etc/ddiff/test/image.png", filepath.Join(root, "charts", "ddiff", "files", "image.png")).Replace(script)
	programs := t.TempDir()
	must(t, os.Symlink(program, filepath.Join(programs, "ddiff")))

	c := startCluster(t, Options{Directory: true})
	coordinator(t, c)
	worker(t, c, "--batch", "1")
	for _, uid := range []string{"5b0f5d5e-0001", "5b0f5d5e-0002"} {
		pod := exec.CommandContext(t.Context(), "/bin/sh", "-euc", script)
		pod.Env = c.Command(t.Context()).Env
		with(pod, "POD_UID="+uid, "PATH="+programs+":"+os.Getenv("PATH"))
		e := end(t, pod)
		if e.code != 0 || !strings.HasSuffix(e.stdout, "done=1 failed=0 dead=0 lost=0\n") || strings.Contains(e.stdout, "submitted before") {
			t.Fatalf("%v", e)
		}
	}
	if list := ask(t, c, "list"); strings.Count(list.stdout, "helm-test") != 2 {
		t.Errorf("want two campaigns: %s", fmt.Sprint(list))
	}
}
