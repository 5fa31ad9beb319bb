package cluster

import (
	"context"
	"net/http"

	"github.com/spf13/pflag"

	"ddiff/telemetry"
)

// listenFlags are the addresses at which a process of a cluster answers supervisors and Prometheus.
type listenFlags struct{ health, metrics string }

func (l *listenFlags) add(f *pflag.FlagSet) {
	f.StringVar(&l.health, "health-listen", "", "serve GET /startupz, /readyz and /livez at `HOST:PORT` (default: off)")
	f.StringVar(&l.metrics, "metrics-listen", "", "serve GET /metrics for Prometheus at `HOST:PORT`, which may be that of --health-listen (default: off)")
}

// serve serves the probes and the metrics until stop is called. The error is that of cli.Usage when an address cannot be used.
func (l listenFlags) serve(ctx context.Context, p *probes, tel *telemetry.Telemetry) (stop func(), err error) {
	byAddress := map[string]*endpoint{}
	at := func(flag, address string) *http.ServeMux {
		e := byAddress[address]
		if e == nil {
			e = &endpoint{flag: flag, address: address, mux: http.NewServeMux()}
			byAddress[address] = e
		}
		return e.mux
	}
	if l.health != "" {
		p.handle(at("--health-listen", l.health))
	}
	if l.metrics != "" {
		at("--metrics-listen", l.metrics).Handle("GET /metrics", tel.Metrics())
	}
	stop = func() {
		for _, e := range byAddress {
			e.Stop()
		}
	}
	for _, e := range byAddress {
		if err := e.Start(context.WithoutCancel(ctx)); err != nil {
			stop()
			return nil, err
		}
	}
	return stop, nil
}
