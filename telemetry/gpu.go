package telemetry

import (
	"os"
	"slices"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"go.opentelemetry.io/otel/metric"
)

// gpu is one reading of a GPU.
type gpu struct {
	id, name    string
	utilization float64 // share of time
	used, limit int64   // bytes
	own         bool    // this process runs on it
}

// ObserveGPUs reports the use and the memory of the GPUs of this process, as NVIDIA's management library reads them, until stop
// is called. Without the library or a GPU it reports nothing, which is no error.
func ObserveGPUs(meter metric.Meter) (stop func() error, err error) {
	if nvml.Init() != nvml.SUCCESS {
		return func() error { return nil }, nil //nolint:nilerr // most machines have no such library
	}
	unregister, err := observeGPUs(meter, readGPUs)
	if err != nil {
		_ = nvml.Shutdown() // nothing can be done
		return nil, err
	}
	return sync.OnceValue(func() error {
		err := unregister()
		_ = nvml.Shutdown() // the process ends, or goes on without
		return err
	}), nil
}

// observeGPUs reports the readings of read. If this process runs on none of the GPUs, as far as the library knows, it reports all of
// them: in a container, the library may name processes by other ids.
func observeGPUs(meter metric.Meter, read func() []gpu) (stop func() error, err error) {
	return observe(meter, FromWorker, func(report report) {
		all := read()
		own := slices.ContainsFunc(all, func(g gpu) bool { return g.own })
		for _, g := range all {
			if own && !g.own {
				continue
			}
			report("hw.gpu.utilization", g.utilization, g.id, "gpu", g.name)
			report("hw.gpu.memory.usage", float64(g.used), g.id, "gpu", g.name)
			report("hw.gpu.memory.limit", float64(g.limit), g.id, "gpu", g.name)
		}
	})
}

func readGPUs() []gpu {
	n, result := nvml.DeviceGetCount()
	if result != nvml.SUCCESS {
		return nil
	}
	var all []gpu
	for i := range n {
		device, result := nvml.DeviceGetHandleByIndex(i)
		if result != nvml.SUCCESS {
			continue
		}
		id, first := device.GetUUID()
		memory, second := device.GetMemoryInfo()
		rates, third := device.GetUtilizationRates()
		if first != nvml.SUCCESS || second != nvml.SUCCESS || third != nvml.SUCCESS {
			continue
		}
		g := gpu{id: id, utilization: float64(rates.Gpu) / 100, used: int64(memory.Used), limit: int64(memory.Total)}
		g.name, _ = device.GetName() // empty if unknown
		processes, _ := device.GetComputeRunningProcesses()
		for _, p := range processes {
			g.own = g.own || int(p.Pid) == os.Getpid()
		}
		all = append(all, g)
	}
	return all
}
