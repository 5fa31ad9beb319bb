package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"ddiff/restore/prior"
)

// torchProcess is a Python process that runs the solver in PyTorch with the bundled prior. It serves one request at a
// time and is idle between requests.
type torchProcess struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
	hello   torchHello
	skipped []string // variants that are not measured, with the reason
}

// torchHello is the first line of the process.
type torchHello struct {
	Torch    string   `json:"torch"`
	Variants []string `json:"variants"` // that this PyTorch and this processor support
}

// torchRequest asks for steps of the solver.
type torchRequest struct {
	Variant string `json:"variant"`
	Task    string `json:"task"`
	Batch   int    `json:"batch"`
	Steps   int    `json:"steps"`
}

// inFloat32Variant reports whether a variant, such as float32+channels_last, computes in float32.
func inFloat32Variant(v setting) bool { return strings.HasPrefix(v.name, "float32") }

// startTorch starts the process in o.tools. dir receives the prior.
func (o benchOptions) startTorch(ctx context.Context, dir string, stderr io.Writer) (*torchProcess, error) {
	model, err := filepath.Abs(filepath.Join(dir, "prior.onnx"))
	if err != nil {
		return nil, err
	}
	data, err := prior.Read(prior.Bundled)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(model, data, 0o644); err != nil {
		return nil, err
	}
	threads := o.run.Threads
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	cmd := exec.CommandContext(ctx, o.torch, "-m", "ddiff_torch.bench", "--serve", "--prior", model,
		"--threads", strconv.Itoa(threads), "--size", strconv.Itoa(o.size))
	if strings.HasPrefix(o.run.Device, "cuda") {
		cmd.Args = append(cmd.Args, "--device", o.run.Device)
	}
	cmd.Dir, cmd.Stderr = o.tools, stderr
	if cache, err := os.UserCacheDir(); err == nil { // what one bench compiles, the next one loads
		cmd.Env = append(os.Environ(), "TORCHINDUCTOR_CACHE_DIR="+filepath.Join(cache, "ddiff", "torch"))
	}
	p := &torchProcess{cmd: cmd}
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("run PyTorch: %w", err)
	}
	if err := p.read(&p.hello); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// read decodes the next line of the process.
func (p *torchProcess) read(into any) error {
	if !p.out.Scan() {
		return errors.Join(errors.New("run PyTorch: the process ended"), p.out.Err())
	}
	if err := json.Unmarshal(p.out.Bytes(), into); err != nil {
		return fmt.Errorf("run PyTorch: read %q: %w", p.out.Text(), err)
	}
	return nil
}

// step returns the milliseconds per step of a batch. The first request of a variant and batch size also warms up and, if
// the variant is compiled, compiles; that time does not count.
func (p *torchProcess) step(r torchRequest) (float64, error) {
	line, err := json.Marshal(r)
	if err != nil {
		return 0, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return 0, fmt.Errorf("run PyTorch: %w", err)
	}
	var answer struct {
		MS    float64 `json:"ms_per_step"`
		Error string  `json:"error"`
	}
	if err := p.read(&answer); err != nil {
		return 0, err
	}
	if answer.Error != "" {
		return 0, torchVariantError(answer.Error)
	}
	if answer.MS <= 0 {
		return 0, fmt.Errorf("run PyTorch: %g ms per step", answer.MS)
	}
	return answer.MS, nil
}

// torchVariantError is the reason for which a variant cannot run, such as a missing compiler.
type torchVariantError string

func (e torchVariantError) Error() string { return string(e) }

// prepare warms every variant up for each batch size and returns those that run.
func (p *torchProcess) prepare(batches []int, task string) (run []setting, err error) {
	for _, n := range batches {
		for _, variant := range p.hello.Variants {
			_, err := p.step(torchRequest{Variant: variant, Task: task, Batch: n, Steps: 1})
			if reason, ok := errors.AsType[torchVariantError](err); ok {
				p.skipped = append(p.skipped, fmt.Sprintf("%s, batch %d: %s", variant, n, reason))
				continue
			}
			if err != nil {
				return nil, err
			}
			run = append(run, setting{variant, n})
		}
	}
	return run, nil
}

// close ends the process.
func (p *torchProcess) close() error {
	err := p.in.Close() // the process ends with its input
	if waited := p.cmd.Wait(); waited != nil {
		err = errors.Join(err, fmt.Errorf("run PyTorch: %w", waited))
	}
	return err
}
