package testbed

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// scrapeInterval limits how late a count of Prometheus is.
const scrapeInterval = 250 * time.Millisecond

// prometheus is a running Prometheus.
type prometheus struct {
	*Process
	address string
}

// startPrometheus starts a Prometheus that reads the coordinators' and workers' metrics, with the rules of the project. The rules run
// sixty times as fast.
func startPrometheus(ctx context.Context, program, dir string, jobs map[string][]string) (*prometheus, error) {
	address, err := FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := ModuleRoot(ctx)
	if err != nil {
		return nil, err
	}
	rules, err := os.ReadFile(filepath.Join(root, "deploy", "prometheus", "rules.yaml"))
	if err != nil {
		return nil, err
	}
	var config strings.Builder
	fmt.Fprintf(&config, "global: {scrape_interval: %v, scrape_timeout: %v, evaluation_interval: 500ms}\nrule_files: [rules.yaml]\nscrape_configs:\n",
		scrapeInterval, scrapeInterval)
	for job, targets := range jobs {
		fmt.Fprintf(&config, "  - {job_name: %s, static_configs: [{targets: ['%s']}]}\n", job, strings.Join(targets, "', '"))
	}
	for name, data := range map[string]string{"prometheus.yml": config.String(), "rules.yaml": hasten(string(rules))} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
			return nil, err
		}
	}
	p := &prometheus{address: address}
	p.Process = NewProcess(dir, "prometheus", nil, program, "--config.file", filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", address, "--log.level", "warn")
	if err := p.Start(); err != nil {
		return nil, err
	}
	return p, poll(ctx, time.Minute, "Prometheus", func() (bool, error) {
		if !p.Running() {
			return false, fmt.Errorf("it has ended: %s", tail(p.Log()))
		}
		var answer []sample
		err := p.ask(ctx, "query", url.Values{"query": {"up"}}, &answer)
		return err == nil, err
	})
}

// hasten turns the minutes of rules into seconds.
func hasten(rules string) string {
	rules = regexp.MustCompile(`\b(\d+)m\b`).ReplaceAllString(rules, "${1}s")
	return strings.ReplaceAll(rules, "30 * 60", "30")
}

// sample is a series of an answer: one value, or the values of a range.
type sample struct {
	Metric map[string]string `json:"metric"`
	Value  point             `json:"value"`
	Values []point           `json:"values"`
}

// point is a value at a time.
type point struct {
	at    time.Time
	value float64
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *point) UnmarshalJSON(data []byte) error {
	var pair [2]any
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	seconds, ok := pair[0].(float64)
	text, ok2 := pair[1].(string)
	if !ok || !ok2 {
		return fmt.Errorf("%s is no time with a value", data)
	}
	p.at = time.UnixMicro(int64(seconds * 1e6))
	var err error
	p.value, err = strconv.ParseFloat(text, 64)
	return err
}

// ask calls the HTTP API and decodes the result of the data.
func (p *prometheus) ask(ctx context.Context, verb string, values url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+"/api/v1/"+verb+"?"+values.Encode(), nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close() // it was read
	var answer struct {
		Error string `json:"error"`
		Data  struct {
			Result json.RawMessage `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return fmt.Errorf("ask Prometheus for %s: %w", values.Get("query"), err)
	}
	if answer.Error != "" {
		return fmt.Errorf("ask Prometheus for %s: %s", values.Get("query"), answer.Error)
	}
	return json.Unmarshal(answer.Data.Result, into)
}

// number returns the value of a query with one series, 0 without any.
func (p *prometheus) number(ctx context.Context, query string) (float64, error) {
	var all []sample
	if err := p.ask(ctx, "query", url.Values{"query": {query}}, &all); err != nil {
		return 0, err
	}
	switch len(all) {
	case 0:
		return 0, nil
	case 1:
		return all[0].Value.value, nil
	}
	return 0, fmt.Errorf("query %s has %d series, want one", query, len(all))
}

// series returns the series of a query with the values between two times.
func (p *prometheus) series(ctx context.Context, query string, from, to time.Time) ([]sample, error) {
	stamp := func(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }
	var all []sample
	err := p.ask(ctx, "query_range", url.Values{"query": {query}, "start": {stamp(from)}, "end": {stamp(to)}, "step": {"0.5"}}, &all)
	return all, err
}

// firing returns whether an alert fires.
func (p *prometheus) firing(ctx context.Context, alert string) (bool, error) {
	n, err := p.number(ctx, `count(ALERTS{alertstate="firing",alertname="`+alert+`"})`)
	return n > 0, err
}
