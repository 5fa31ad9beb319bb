package testbed

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// The range lies below the kernel's ephemeral ports, so that a restarted server finds its port free.
const (
	firstPort = 20000
	ports     = 12000
)

// FreePort returns an unused port of 127.0.0.1.
func FreePort(ctx context.Context) (int, error) {
	for range 100 {
		port := firstPort + rand.IntN(ports)
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
	return 0, errors.New("find a free port: 100 ports were taken")
}

// FreeAddress returns an unused address of 127.0.0.1.
func FreeAddress(ctx context.Context) (string, error) { return freeAddress(ctx, "") }

// freeAddress returns an unused address of a loopback host, by default 127.0.0.1.
func freeAddress(ctx context.Context, host string) (string, error) {
	port, err := FreePort(ctx)
	return net.JoinHostPort(cmp.Or(host, "127.0.0.1"), strconv.Itoa(port)), err
}
