// Package queuetest has the slow network of tests of the queue and its users.
package queuetest

import (
	"context"
	"errors"
	"net"
	"time"
)

// ahead is the number of reads and writes of a connection that may be on their way; more block the sender.
const ahead = 4096

// Dialer opens connections with a delay: bytes arrive half of RoundTrip after they were sent, in both directions, at any
// rate. It fits the client's option for a custom dialer.
type Dialer struct {
	RoundTrip time.Duration
}

// Dial opens a connection.
func (d Dialer) Dial(network, address string) (net.Conn, error) {
	far, err := new(net.Dialer).DialContext(context.Background(), network, address)
	if err != nil {
		return nil, err
	}
	near, relay := net.Pipe()
	go transfer(far, relay, d.RoundTrip/2)
	go transfer(relay, far, d.RoundTrip/2)
	return near, nil
}

type packet struct {
	data []byte
	due  time.Time
}

// transfer copies from one connection to the other with a delay, and closes both at the end of either.
func transfer(to, from net.Conn, delay time.Duration) {
	packets := make(chan packet, ahead)
	ended := make(chan struct{})
	go func() {
		defer close(packets)
		for {
			buf := make([]byte, 32<<10)
			n, err := from.Read(buf)
			if n > 0 {
				select {
				case packets <- packet{buf[:n], time.Now().Add(delay)}:
				case <-ended:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range packets {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.data); err != nil {
			break
		}
	}
	close(ended)
	_ = errors.Join(to.Close(), from.Close()) // the other direction may have closed them
}
