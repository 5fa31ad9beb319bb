package testbed

import (
	"bytes"
	"image"
	"image/png"
	"strconv"
	"testing"
)

// LimitMemory limits the data memory of the process from its next start, in bytes. An allocation beyond the limit ends
// the process, as the kernel's OOM killer does.
func (p *Process) LimitMemory(bytes int64) {
	if p.memory == 0 {
		p.args = append([]string{"", p.path}, p.args...)
		p.path = "prlimit"
	}
	p.memory = bytes
	p.args[0] = "--data=" + strconv.FormatInt(bytes, 10)
}

// hugeImage returns a small file with an image of side×side pixels of 16 bits per channel, as PNG. A decoder needs at least
// eight bytes per pixel.
func hugeImage(side, grey int) ([]byte, error) {
	img := image.NewNRGBA64(image.Rect(0, 0, side, side))
	for i := range img.Pix {
		img.Pix[i] = byte(grey)
	}
	var out bytes.Buffer
	err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, img)
	return out.Bytes(), err
}

func TestLimitMemory(t *testing.T) {
	t.Parallel()
	const limit = 1 << 30
	for name, want := range map[string]int{"101M": 0, "2G": 1} {
		p := NewProcess(t.TempDir(), "memory", nil, "dd", "if=/dev/zero", "of=/dev/null", "count=1", "bs="+name)
		p.LimitMemory(limit)
		must(t, p.Start())
		<-p.Exited()
		if p.Code() != want {
			t.Errorf("dd with a block of %s ended with code %d, want %d\n%s", name, p.Code(), want, p.Log())
		}
	}
}
