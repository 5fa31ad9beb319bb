package main_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkHostImage measures the CPU time of a picture of a campaign beside its steps, see `make bench-host`: the network does next to nothing. That of a step with
// this network is found from runs with more of them. Short runs alternate, and the smallest of their times counts: what else the machine computes
// slows the others. The process has one processor: with several, ONNX Runtime's threads wait for each other in loops, and two of a core slow each other.
func BenchmarkHostImage(b *testing.B) {
	const pictures, rounds, steps, many = 64, 3, 2, 12
	dir := b.TempDir()
	for i := range pictures {
		writeShifted(b, i, filepath.Join(dir, "pictures", fmt.Sprint(i, ".png")))
	}
	prior := filepath.Join(dir, "tiny.onnx")
	writePrior(b, prior, 3, card(3))
	var perImage float64
	for b.Loop() {
		var times [many + 1][]float64
		for range rounds {
			for _, n := range []int{steps, many} {
				out := filepath.Join(b.TempDir(), "out")
				times[n] = append(times[n], perPicture(b, out, onOneProcessor(b, command(b, "run", filepath.Join(dir, "pictures"), "--size", "256", "--task", "super_resolution",
					"--steps", fmt.Sprint(n), "--device", "cpu", "--prior", prior, "--out", out, "--quiet"))))
			}
		}
		few, more := slices.Min(times[steps]), slices.Min(times[many])
		perImage = few - steps*(more-few)/(many-steps)
	}
	b.ReportMetric(perImage, "image_ms")
}

// onOneProcessor limits a command to the first processor that it may use.
func onOneProcessor(b *testing.B, cmd *exec.Cmd) *exec.Cmd {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	must(b, err)
	_, list, _ := strings.Cut(string(status), "Cpus_allowed_list:")
	first := strings.FieldsFunc(list, func(r rune) bool { return r < '0' || r > '9' })[0]
	limiter, err := exec.LookPath("taskset")
	must(b, err)
	cmd.Path, cmd.Args = limiter, append([]string{limiter, "--cpu-list", first, cmd.Path}, cmd.Args[1:]...)
	return cmd
}

// perPicture runs a campaign and returns the CPU time of a further picture in milliseconds: the slope of the line through the process's time at each number of pictures
// that are finished, so that its start and the report do not count.
func perPicture(b *testing.B, out string, cmd *exec.Cmd) float64 {
	b.Helper()
	must(b, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var last, n, x, y, xx, xy float64
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case err := <-ended:
			must(b, err)
			tick.Stop()
			return (n*xy - x*y) / (n*xx - x*x)
		case <-tick.C:
		}
		results, err := filepath.Glob(filepath.Join(out, "items", "*", "result.json"))
		must(b, err)
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		done := float64(len(results))
		if err != nil || done == last { // the process has ended, or has finished no picture since
			continue
		}
		last = done
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')'):])) // from the second one on, see proc_pid_stat(5): the name may have spaces
		user, err := strconv.ParseFloat(fields[12], 64)
		must(b, err)
		system, err := strconv.ParseFloat(fields[13], 64)
		must(b, err)
		const tickMilliseconds = 10
		spent := (user + system) * tickMilliseconds
		n, x, y, xx, xy = n+1, x+done, y+spent, xx+done*done, xy+done*spent
	}
}

// writeShifted writes a picture of 256×256 pixels: picture i has a photograph that is shifted cyclically, so that no two are equal.
func writeShifted(b *testing.B, i int, path string) {
	b.Helper()
	photographs, err := filepath.Glob("../../examples/images/*.png")
	must(b, err)
	photograph := photographs[i%len(photographs)]
	in, err := os.Open(photograph)
	must(b, err)
	defer in.Close() // it was read
	src, err := png.Decode(in)
	must(b, err)
	const side = 256
	if size := src.Bounds().Size(); size != image.Pt(side, side) {
		b.Fatalf("%s has %v pixels", photograph, size)
	}
	dst := image.NewNRGBA(image.Rect(0, 0, side, side))
	for y := range side {
		for x := range side {
			dst.Set(x, y, src.At((x+37*i)%side, (y+29*i)%side))
		}
	}
	var out strings.Builder
	must(b, png.Encode(&out, dst))
	must(b, os.MkdirAll(filepath.Dir(path), 0o755))
	write(b, path, []byte(out.String()))
}
