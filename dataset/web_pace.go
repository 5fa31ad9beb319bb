package dataset

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// minRate is the least rate of a transfer in bytes per second, over Config.Timeout.
const minRate = 1 << 10

// limit cancels a transfer of size bytes after its time limit, or when it is slower than minRate. The caller calls the
// returned function at the end.
func (w *web) limit(cancel context.CancelCauseFunc, response *http.Response, size int64) (stop func()) {
	body := &countedBody{ReadCloser: response.Body}
	response.Body = body
	budget := w.cfg.Timeout + time.Duration(size>>20)*time.Second
	total := time.AfterFunc(budget, func() { cancel(errTimeout) })
	least := int64(minRate * w.cfg.Timeout.Seconds())
	var ended atomic.Bool
	var pace *time.Timer
	ready := make(chan struct{})
	pace = time.AfterFunc(w.cfg.Timeout, func() {
		<-ready
		if body.bytes.Swap(0) < least {
			cancel(errTimeout)
			return
		}
		if !ended.Load() {
			pace.Reset(w.cfg.Timeout)
		}
	})
	close(ready)
	return func() {
		ended.Store(true)
		total.Stop()
		pace.Stop()
	}
}

type countedBody struct {
	io.ReadCloser
	bytes atomic.Int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes.Add(int64(n))
	return n, err
}
