package serve

import (
	"net"
	"net/http"
	"sync"

	"golang.org/x/time/rate"
)

const (
	// requestRate and requestBurst limit the requests of one address. A page of thumbnails needs some hundred at once.
	requestRate, requestBurst = 200, 2000
	// maxAddresses is the number of addresses in memory.
	maxAddresses = 10_000
)

// rates limits the requests of each address.
type rates struct {
	mu        sync.Mutex
	byAddress map[string]*rate.Limiter
}

func newRates() *rates { return &rates{byAddress: map[string]*rate.Limiter{}} }

// addressOf returns the address of the sender of a request, without its port.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// allow reports whether the address of a request may send it now.
func (l *rates) allow(r *http.Request) bool {
	host := addressOf(r)
	l.mu.Lock()
	limiter := l.byAddress[host]
	if limiter == nil {
		if len(l.byAddress) >= maxAddresses {
			clear(l.byAddress)
		}
		limiter = rate.NewLimiter(requestRate, requestBurst)
		l.byAddress[host] = limiter
	}
	l.mu.Unlock()
	return limiter.Allow()
}
