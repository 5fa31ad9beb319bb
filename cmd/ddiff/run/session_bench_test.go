package run

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"
)

// BenchmarkSession measures the processor time of a request for one picture, in the process, and what of it is beside the solver. With other settings than
// those of the request before, the solver's models are found by their graphs.
func BenchmarkSession(b *testing.B) {
	const side = 64
	r := rand.New(rand.NewPCG(1, 1))
	var y []byte
	for i := range 3 * side * side {
		y = binary.LittleEndian.AppendUint32(y, math.Float32bits(float32(0.5+0.3*math.Sin(float64(i)/200)+0.05*r.NormFloat64())))
	}
	for _, settings := range []struct {
		name  string
		steps []int
	}{{"same", []int{4}}, {"other", []int{3, 4, 5}}} {
		b.Run(settings.name, func(b *testing.B) {
			c := open(b)
			var all, solver time.Duration
			id := 0
			request := func() {
				id++
				steps, begin := settings.steps[id%len(settings.steps)], processorTime(b)
				c.send(fmt.Sprintf("\n"+`{"id":%d,"task":"gaussian_deblur","params":{"std":3},"sigma":0.1,"method":"ddiff","steps":%d,"progress":true,"pictures":[{"shape":[%d,%d,3]}]}`+"\n",
					id, steps, side, side), y)
				var at []time.Duration // of the steps
				for a := c.next(); !a.Done; a = c.next() {
					if a.Error != "" {
						b.Fatal(a.Error)
					}
					if a.Step > 0 {
						at = append(at, processorTime(b))
					}
				}
				if len(at) != steps {
					b.Fatalf("%d steps", len(at))
				}
				all += processorTime(b) - begin
				solver += (at[steps-1] - at[0]) * time.Duration(steps) / time.Duration(steps-1)
			}
			request()
			all, solver = 0, 0
			for b.Loop() {
				request()
			}
			each := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 / float64(b.N) }
			b.ReportMetric(each(solver), "solver_ms")
			b.ReportMetric(each(all-solver), "beside_ms")
			b.ReportMetric(each(all)/each(solver), "ratio")
			if err := c.in.Close(); err != nil {
				b.Fatal(err)
			}
			if err := <-c.ended; err != nil {
				b.Fatal(err)
			}
		})
	}
}

// processorTime is that of this process.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
