package gpucheck

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// page writes Markdown and keeps the first error.
type page struct {
	w   io.Writer
	err error
}

func (p *page) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// table writes a table under a heading; it writes nothing without rows.
func (p *page) table(title, note string, head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	p.line("\n## %s\n", title)
	if note != "" {
		p.line("%s\n", note)
	}
	p.line("| %s |", strings.Join(head, " | "))
	p.line("|%s", strings.Repeat(" --- |", len(head)))
	for _, r := range rows {
		p.line("| %s |", strings.Join(r, " | "))
	}
}

func cell(format string, args ...any) string {
	return strings.ReplaceAll(fmt.Sprintf(format, args...), "|", "/")
}

// WritePage writes the report in Markdown.
func (r *Report) WritePage(w io.Writer) error {
	p := &page{w: w}
	p.line("# Check of %s\n", r.Config.Device)
	p.line("Written by `ddiff doctor --gpu` (ddiff %s) on %s. `gpu-check.json` contains the same figures.\n", r.Program, r.Time.UTC().Format(time.DateOnly))
	p.line("- Machine: %s; %s, %d cores, %d MiB of memory", r.Machine.OS, r.Machine.CPU, r.Machine.Cores, r.Machine.MemoryMiB)
	if g := r.Machine.GPU; g != nil {
		p.line("- GPU: %s, %d MiB, driver %s", g.Name, g.MemoryMiB, g.Driver)
	}
	if v := r.Provider; v != nil {
		p.line("- ONNX Runtime %s, provider %s", v.Library, v.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Unsupported)) {
		p.line("- Without %s: %s", name, r.Unsupported[name])
	}
	p.line("- Images of %d×%d, %d steps; the random network has %d base channels at %d×%d",
		r.Config.Size, r.Config.Size, r.Config.Steps, r.Config.Random.Base, r.Config.Random.Size, r.Config.Random.Size)
	p.line("\n```\n%s\n```", r.Line())
	r.sections(p)
	r.agreement(p)
	r.restorations(p)
	r.speed(p)
	r.processes(p)
	r.torchTable(p)
	return p.err
}

func (r *Report) sections(p *page) {
	var rows [][]string
	for _, s := range r.Sections {
		rows = append(rows, []string{s.Name, s.Status, cell("%.1f", s.Seconds), cell("%s", strings.Join(strings.Fields(s.Detail), " "))})
	}
	p.table("Sections", "", []string{"section", "status", "seconds", "detail"}, rows)
}

func (r *Report) agreement(p *page) {
	var rows [][]string
	for _, a := range r.Network {
		rows = append(rows, []string{a.Network, a.Precision, cell("%.2e", a.MaxAbs), cell("%.2f", a.Largest)})
	}
	p.table("Network", "Largest absolute difference of the score network's output from the CPU's in float32, over four time indices.",
		[]string{"network", "precision", "difference", "largest value"}, rows)
}

func (r *Report) restorations(p *page) {
	var precisions []string
	for _, t := range r.Tasks {
		for _, x := range t.Results {
			if !slices.Contains(precisions, x.Precision) {
				precisions = append(precisions, x.Precision)
			}
		}
	}
	head := []string{"task", "photograph", "one step", "grey levels", "CPU dB"}
	for _, name := range precisions {
		head = append(head, name+" dB", name+" against CPU dB")
	}
	var rows [][]string
	for _, t := range r.Tasks {
		row := []string{t.Task, t.Photograph, cell("%.2e", t.StepMaxAbs), cell("%d", t.GreyLevels), cell("%.2f", t.CPU)}
		for _, x := range t.Results {
			row = append(row, cell("%.2f", x.PSNR), cell("%.1f", x.PSNRToCPU))
		}
		rows = append(rows, row)
	}
	p.table("Tasks", "One step: largest difference of the state after one step from equal states, in float32. Grey levels: largest\n"+
		"difference of the restored images, in float32. PSNR is against the photograph and against the CPU's restoration in\n"+
		"float32 (at most 80).", head, rows)
}

func (r *Report) speed(p *page) {
	var rows [][]string
	for _, s := range r.Speed {
		row := []string{s.Network, s.Precision, cell("%d", s.Size), cell("%d", s.Batch)}
		if s.Error != "" {
			row = append(row, "out of memory", "", "", "", "")
		} else {
			row = append(row, cell("%.2f", s.NetworkMS), cell("%.2f", s.StepMS), cell("%.2f", s.Share), cell("%d", s.BytesPerStep), cell("%d", s.MemoryMiB))
		}
		rows = append(rows, row)
	}
	p.table("Speed", "Super-resolution, milliseconds per step of a batch. Bytes per step are transferred between host and device,\n"+
		"computed from the tensors of a call. Memory is the device memory in use, or on a CPU the peak resident memory.",
		[]string{"network", "precision", "size", "batch", "network ms", "step ms", "share", "bytes per step", "memory MiB"}, rows)
}

func (r *Report) processes(p *page) {
	var rows [][]string
	if c := r.Campaign; c != nil {
		for _, batch := range slices.Sorted(maps.Keys(c.Share)) {
			rows = append(rows, []string{cell("share of the network in a campaign's wall time, batch %d", batch), cell("%.2f", c.Share[batch])})
		}
	}
	if s := r.Process; s != nil {
		rows = append(rows, []string{"SIGTERM: exit code, seconds until exit", cell("%d, %.1f", s.DrainExit, s.DrainSeconds)})
		if len(s.Memory) == 3 {
			rows = append(rows, []string{"SIGKILL: device MiB before, during, after", cell("%d, %d, %d", s.Memory[0], s.Memory[1], s.Memory[2])})
		}
		rows = append(rows, []string{"after SIGKILL the next process works", cell("%v", s.Restarted)})
	}
	p.table("Campaign and processes", "", []string{"check", "result"}, rows)
}

func (r *Report) torchTable(p *page) {
	if r.Torch == nil {
		return
	}
	var rows [][]string
	for _, t := range r.Torch.Results {
		ours, ratio := "", ""
		for _, s := range r.Speed {
			if s.Network == randomNetwork && s.Precision == t.Precision && s.Batch == t.Batch && s.Error == "" {
				ours, ratio = cell("%.2f", s.NetworkMS), cell("%.2f", t.MS/s.NetworkMS)
			}
		}
		rows = append(rows, []string{t.Mode, t.Precision, cell("%d", t.Batch), cell("%.2f", t.MS), t.Layout, ours, ratio})
	}
	note := fmt.Sprintf("PyTorch %s on %s with the random network's weights. Its output in float32 differs from ddiff's by %.2e. Milliseconds\n"+
		"per call of the network alone. At a ratio above 1, PyTorch is slower.", r.Torch.Version, r.Torch.Device, r.Torch.MaxAbs)
	if len(r.Torch.Skipped) > 0 {
		note += " Not measured: " + strings.Join(r.Torch.Skipped, "; ") + "."
	}
	p.table("PyTorch", note, []string{"mode", "precision", "batch", "PyTorch ms", "layout", "ddiff ms", "ratio"}, rows)
}
