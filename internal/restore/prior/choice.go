package prior

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"ddiff/internal/regular"
	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxruntime"
)

// Workload is what the forms of a network are timed with.
type Workload struct {
	Images, Height, Width int
	Precision             onnxruntime.Precision
	// Form is the only one that is tried. Empty: all.
	Form Form
}

// Choice is the form that a device computes fastest, and what was tried.
type Choice struct {
	Form  Form    `json:"form"`
	Tried []Trial `json:"tried"`
}

// Trial is the check of a form.
type Trial struct {
	Form         Form    `json:"form"`
	Milliseconds float64 `json:"ms,omitempty"`         // of an evaluation of the batch, whose images are on the device
	Difference   float64 `json:"difference,omitempty"` // the largest one from the CPU provider in float32, as a share of the largest prediction
	Left         string  `json:"left,omitempty"`       // why the form is not used

	memory bool // the reason is a lack of memory, which may pass
}

func (t *Trial) leave(err error) {
	t.Left, t.memory = err.Error(), errors.Is(err, onnxruntime.ErrMemory)
}

func (c Choice) lacksMemory() bool {
	return slices.ContainsFunc(c.Tried, func(t Trial) bool { return t.memory })
}

func (c Choice) failed() bool {
	return len(c.Tried) > 0 && !slices.ContainsFunc(c.Tried, func(t Trial) bool { return t.Left == "" })
}

// Undecided reports whether no form passed for lack of memory, which a smaller batch may have.
func (c Choice) Undecided() bool { return c.failed() && c.lacksMemory() }

// Err returns ErrForm and onnxruntime.ErrFallback if the stated form of a workload failed, unless memory lacked, which its solver reports.
func (c Choice) Err(w Workload) error {
	if w.Form == "" || !c.failed() || c.lacksMemory() {
		return nil
	}
	return fmt.Errorf("%w %s: %w: %s; use --form auto", ErrForm, w.Form, onnxruntime.ErrFallback, c.Tried[0].Left)
}

const (
	// choiceLimit is the time after which a choice tries no further form.
	choiceLimit = time.Minute
	// choiceWorth is the share of the time of the forms before at which another one replaces them.
	choiceWorth = 0.95
	// choiceCalls is the number of calls that must predict equal bits.
	choiceCalls = 5
	// choiceBytes is the size of the largest stored choice.
	choiceBytes = 1 << 20
)

// errChoice: a choice takes longer than choiceLimit.
var errChoice = fmt.Errorf("the choice takes more than %v", choiceLimit)

// Choose returns the form for a workload on a device. The first time for a device, driver, version of the library, program, network and workload, it tries
// the forms, see Try, and stores the choice in the user's cache, unless memory lacked, or a stated form failed. With a choice, an error says why it is not stored.
// The number of images is rounded down to a power of two, so that the remainders of campaigns need no choices of their own.
func (p *Prior) Choose(ctx context.Context, rt *onnxruntime.Runtime, w Workload) (Choice, error) {
	p.choice.Lock()
	defer p.choice.Unlock()
	w.Images = 1 << (bits.Len(uint(w.Images)) - 1)
	file, unknown := p.choiceFile(rt, w)
	if c, ok := storedChoice(file); ok && unknown == nil {
		return c, nil
	}
	c, err := p.Try(ctx, rt, w)
	if err != nil || c.lacksMemory() || w.Form != "" && c.failed() {
		return c, err
	}
	if unknown != nil {
		return c, unknown
	}
	return storeChoice(file, c)
}

// Try checks each form against the prediction of the CPU provider in float32, with the bound of OpenVINO, requires equal bits of five calls, and times it; on a GPU, the
// fastest once more with [Form.Graph]. Of several, it tries none after a minute. Without one that passes, the network is computed as exported.
func (p *Prior) Try(ctx context.Context, rt *onnxruntime.Runtime, w Workload) (Choice, error) {
	c := Choice{Form: Exported}
	within := ctx
	if w.Form == "" {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeoutCause(ctx, choiceLimit, errChoice)
		defer cancel()
	}
	want, unknown := p.expected(within, rt, w)
	best := 0.0
	try := func(f Form) {
		t := Trial{Form: f}
		switch {
		case unknown != nil:
			t.leave(unknown)
		case within.Err() != nil:
			t.leave(errChoice)
		default:
			t = p.try(within, rt, w, f, want)
		}
		c.Tried = append(c.Tried, t)
		if t.Left == "" && (best == 0 || t.Milliseconds <= choiceWorth*best) {
			c.Form, best = f, t.Milliseconds
		}
	}
	if w.Form != "" {
		try(w.Form)
		return c, ctx.Err()
	}
	for _, f := range Rewritings() {
		try(f)
	}
	if rt.GPU() && best > 0 {
		try(c.Form.WithGraph())
	}
	return c, ctx.Err()
}

// choiceTimes are the time indices of the check: the middle of the schedule and its end.
func (p *Prior) choiceTimes() []int { return []int{p.Schedule.Steps() / 2, p.Schedule.Steps() - 1} }

// expected returns the predictions of the CPU provider for one image at choiceTimes.
func (p *Prior) expected(ctx context.Context, rt *onnxruntime.Runtime, w Workload) ([][]float32, error) {
	cpu, err := rt.With(onnxruntime.Config{Provider: onnxruntime.ProviderCPU, Threads: rt.Threads()})
	if err != nil {
		return nil, err
	}
	defer cpu.Close()
	net, err := p.Compile(cpu, p.batch(1), w.Height, w.Width, onnxruntime.FP32)
	if err != nil {
		return nil, err
	}
	defer net.Close()
	return p.predictions(ctx, net)
}

// batch is n, or the batch that the file states.
func (p *Prior) batch(n int) int {
	if stated := p.x.Dims[0]; stated > 0 {
		return stated
	}
	return n
}

// predictions returns those of a network at choiceTimes, for a batch of equal images of noise.
func (p *Prior) predictions(ctx context.Context, net *Network) (out [][]float32, err error) {
	images := net.X.Dims()[0]
	size := len(net.X.F32) / images
	noise.Normal(net.X.F32[:size], fixedNoise(), noise.Step, 0, 1)
	for i := 1; i < images; i++ {
		copy(net.X.F32[i*size:], net.X.F32[:size])
	}
	for _, at := range p.choiceTimes() {
		net.T.I64[0] = int64(at)
		if err := net.Run(ctx); err != nil {
			return nil, err
		}
		out = append(out, slices.Clone(net.Y.F32))
	}
	return out, nil
}

// try checks and times a form.
func (p *Prior) try(ctx context.Context, rt *onnxruntime.Runtime, w Workload, f Form, want [][]float32) (t Trial) {
	t.Form = f
	fail := func(err error) Trial {
		t.leave(err)
		return t
	}
	q, err := p.InForm(rt, f)
	if err != nil {
		return fail(err)
	}
	net, err := q.Compile(rt, p.batch(w.Images), w.Height, w.Width, w.Precision)
	if err != nil {
		return fail(err)
	}
	defer net.Close()
	got, err := q.predictions(ctx, net)
	if err != nil {
		return fail(err)
	}
	for i := range want {
		size := len(net.X.F32) / net.X.Dims()[0]
		for image := range slices.Chunk(got[i], size) {
			if d := difference(image, want[i][:size]); !(d <= t.Difference) {
				t.Difference = d
			}
		}
	}
	if !(t.Difference <= openVINOTolerance) {
		t.Left = fmt.Sprintf("its predictions differ by %.2g of the largest from those of the CPU provider", t.Difference)
		t.Difference = 0 // perhaps NaN, which JSON does not have
		return t
	}
	for range choiceCalls - 1 {
		if err := net.Run(ctx); err != nil {
			return fail(err)
		}
		if !slices.Equal(net.Y.F32, got[len(got)-1]) {
			t.Left = "calls with equal inputs predict different bits"
			return t
		}
	}
	if err := net.StayOnDevice(); err != nil {
		return fail(err)
	}
	const calls, atLeast = 5, 200 * time.Millisecond
	if t.Milliseconds, err = Milliseconds(calls, atLeast, func() error { return net.Run(ctx) }); err != nil {
		return fail(err)
	}
	return t
}

// choiceFile returns the path of a stored choice. Its name is a digest of all that the choice depends on.
func (p *Prior) choiceFile(rt *onnxruntime.Runtime, w Workload) (string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the choice of the network's form: %w", err)
	}
	program, _ := debug.ReadBuildInfo() // another one may rewrite networks otherwise
	key := fmt.Sprintln(rt.Hardware(), rt.Threads(), p.SHA256, w, Rewritings(), program)
	return filepath.Join(user, "ddiff", "forms", regular.SHA256([]byte(key))[:24]+".json"), nil
}

func storedChoice(file string) (c Choice, ok bool) {
	data, err := regular.Read(file, choiceBytes)
	if err != nil || json.Unmarshal(data, &c) != nil {
		return c, false
	}
	_, err = ParseForm(string(c.Form))
	return c, err == nil
}

// storeChoice stores a choice, and returns it, or the one that another process stored meanwhile.
func storeChoice(file string, c Choice) (Choice, error) {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return c, err
	}
	failed := func(err error) (Choice, error) {
		return c, fmt.Errorf("store the choice of the network's form: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return failed(err)
	}
	if other, ok := storedChoice(file); ok {
		return other, nil
	}
	if err := regular.Replace(file, data, 0o644); err != nil {
		return failed(err)
	}
	return c, nil
}
