package prior

import (
	"context"
	"errors"
	"sync"

	"ddiff/internal/restore/onnx/onnxruntime"
)

// streamWeights bounds the memory for the weights of all streams of a batch, in bytes: each has a copy. Large networks keep several
// threads busy in one operation.
const streamWeights = 256 << 20

// Stream is a part of a batch that a session of its own computes, beside those of other parts.
type Stream struct {
	Images  int
	Threads int // of an operation
}

// dividedPixels is the least number of pixels of the network's input in a stream of OpenVINO: docs/data/devices.csv has the times.
const dividedPixels = 2 * 64 * 64

// Streams divides a batch of n images of height×width pixels into parts that are computed beside each other, at most the given number. On processors,
// threads that each compute another image wait less for each other than threads that share each operation. GPUs have one
// stream, as have few small images on OpenVINO, a network whose weights would need too much memory, and one whose file states its batch. The parts have
// equal sizes or differ by one image, and divide the threads of the runtime in the same way.
func (p *Prior) Streams(rt *onnxruntime.Runtime, n, most, height, width int) []Stream {
	s := 1
	input := p.Space().Dims([]int{1, p.Card.Channels, height, width})
	if rt.Divides() {
		most = min(most, n*input[2]*input[3]/dividedPixels)
	}
	if p.x.Dims[0] <= 0 && !rt.GPU() {
		s = max(1, min(most, n, rt.Threads(), streamWeights/max(1, 4*p.Parameters())))
	}
	out := make([]Stream, s)
	for i := range out {
		out[i] = Stream{share(n, s, i), share(rt.Threads(), s, i)}
	}
	return out
}

// share returns part i of n in s parts.
func share(n, s, i int) int {
	if i < n%s {
		return n/s + 1
	}
	return n / s
}

// Networks is a prior's score network, compiled for the streams of a batch.
type Networks []*Network

// CompileStreams builds the network for images of height×width pixels. The caller must close it.
func (p *Prior) CompileStreams(rt *onnxruntime.Runtime, streams []Stream, height, width int, precision onnxruntime.Precision) (Networks, error) {
	var out Networks
	for i, s := range streams {
		n, err := p.Compile(rt.Stream(i, s.Threads), s.Images, height, width, precision)
		if err != nil {
			out.Close()
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

// Run computes all streams beside each other.
func (ns Networks) Run(ctx context.Context) error {
	return Beside(len(ns), func(i int) error { return ns[i].Run(ctx) })
}

// Beside calls f for streams 0 to n−1 at the same time, and joins the errors in this order.
func Beside(n int, f func(i int) error) error {
	errs := make([]error, n)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { errs[i] = f(i) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// Close releases the networks.
func (ns Networks) Close() {
	for _, n := range ns {
		n.Close()
	}
}
