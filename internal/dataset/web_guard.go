package dataset

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"
)

const maxRedirects = 5

type guard struct {
	hosts    []string
	networks []netip.Prefix
	http     bool
}

// checkURL checks a URL before any connection.
func (g guard) checkURL(u *url.URL) error {
	switch {
	case u.Scheme == schemeHTTP && !g.http:
		return fmt.Errorf("%w: http:// is not encrypted; use https://, or --allow-http", ErrRefused)
	case u.Scheme != schemeHTTPS && u.Scheme != schemeHTTP:
		return fmt.Errorf("%w: scheme %q", ErrRefused, u.Scheme)
	case u.User != nil:
		return fmt.Errorf("%w: URL contains credentials", ErrRefused)
	case !g.allowsHost(u.Hostname()):
		return fmt.Errorf("%w: host %q is not allowed", ErrRefused, u.Hostname())
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		return g.checkIP(ip)
	}
	return nil
}

func (g guard) allowsHost(name string) bool {
	if g.hosts == nil {
		return true
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	for _, host := range g.hosts {
		host = strings.ToLower(host)
		if below, ok := strings.CutPrefix(host, "*"); ok && strings.HasSuffix(name, below) || name == host {
			return true
		}
	}
	return false
}

// checkIP refuses addresses that are neither public nor in an allowed network.
func (g guard) checkIP(ip netip.Addr) error {
	allowed := ssrf.New(ssrf.WithAllowedV4Prefixes(g.networks...), ssrf.WithAllowedV6Prefixes(g.networks...))
	if ip = ip.Unmap().WithZone(""); allowed.SafeAddr(ip) != nil {
		return fmt.Errorf("%w: %s is not a public address; allow its network with --allow-network", ErrRefused, ip)
	}
	return nil
}

// control checks the address of a connection after the DNS lookup. It is net.Dialer.Control.
func (g guard) control(network, address string, _ syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return fmt.Errorf("%w: network %s", ErrRefused, network)
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return g.checkIP(to.Addr())
}

// redirect checks a redirect. It is http.Client.CheckRedirect.
func (g guard) redirect(request *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("%w: more than %d redirects", ErrRefused, maxRedirects)
	}
	if request.URL.Scheme != via[0].URL.Scheme {
		return fmt.Errorf("%w: redirect from %s to %s", ErrRefused, via[0].URL.Scheme, request.URL.Scheme)
	}
	request.Header.Del("Referer") // the URL may contain a signature
	if err := g.checkURL(request.URL); err != nil {
		return fmt.Errorf("redirect: %w", err)
	}
	return nil
}
