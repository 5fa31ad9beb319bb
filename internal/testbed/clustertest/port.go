package clustertest

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports that are handed out lie below those that the kernel gives to outgoing connections
// by itself: a server that is started again finds its port free.
const (
	firstPort = 20000
	ports     = 12000
)

// FreePort is a port of 127.0.0.1 on which nobody listens.
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

// FreeAddress is an address of 127.0.0.1 on which nobody listens.
func FreeAddress(ctx context.Context) (string, error) {
	port, err := FreePort(ctx)
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}
