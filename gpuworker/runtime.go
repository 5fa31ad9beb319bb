package gpuworker

import (
	"ddiff/manifest"
	"ddiff/restore"
)

// RuntimeOf describes how an engine computes. steps is the length of a run, which limits the steps per call; 0 when it
// is unknown.
func RuntimeOf(e *restore.Engine, steps int, version string) manifest.Runtime {
	rt, build := e.Runtime(), e.Build()
	k := build.Chunk
	if steps > 0 {
		k = min(k, steps)
	}
	return manifest.Runtime{
		Library: rt.Version(), Provider: rt.Provider(), Device: rt.Device(), Threads: rt.Threads(),
		Options: rt.Settings(), Precision: string(build.Precision), Form: string(build.Form), K: k, Version: version,
	}
}
