package job

import (
	"math"

	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
)

// otherForm is the flag that turns the kernel of a file by 180°.
func (j *Job) otherForm() string {
	other := item.KernelPSF
	if j.Item.KernelForm == item.KernelPSF {
		other = item.KernelCorrelation
	}
	return "--kernel-form " + other
}

func (j *Job) isTurned() string {
	return "the kernel turned by 180° explains the picture better; give " + j.otherForm()
}

// turned compares a stored picture's kernel with the turned one: from least on it is turned, from −least on unsure, see [photograph.Turned]. It is −∞ without a kernel.
func (j *Job) turned() (found, least float64) {
	y := j.blurredByKernel()
	if y == nil {
		return math.Inf(-1), 0
	}
	sigma := j.noise().Level()
	if found := j.estimate(); !math.IsNaN(found) { // a blurred picture has no texture to be taken for noise
		sigma = found
	}
	return photograph.Turned(y, j.draw, sigma), photograph.LeastTurned(sigma)
}

// blurredByKernel is a stored picture that the kernel of a file blurred linearly, or nil.
func (j *Job) blurredByKernel() *raster.Image {
	dims := j.Op.Measurement
	if j.Item.Measurement == nil || j.Item.Kernel == nil || !j.Op.Linear || len(dims) != 3 || j.draw == nil || j.Op.Own != nil {
		return nil
	}
	return &raster.Image{Channels: dims[0], Height: dims[1], Width: dims[2], Pix: j.Problem.Y}
}

// DoubtDraws is Doubt of the mask and the kernel of a measurement that was read, before it is restored.
func (j *Job) DoubtDraws() *Doubt {
	if j.drawDoubt != "" {
		return j.doubt(j.drawDoubt)
	}
	return j.doubtKernel()
}

// doubtKernel doubts a kernel that is turned by 180°, or twice as long as the blur of the picture. Compression with loss leaves blocks and erases frequencies, which look like either.
func (j *Job) doubtKernel() *Doubt {
	y := j.blurredByKernel()
	if y == nil || j.lossy {
		return nil
	}
	if photograph.Long(y, j.draw) >= photograph.LeastLong {
		return j.doubt("the kernel is longer than the blur of the picture, which one of half its size explains better; give a smaller kernel")
	}
	if found, least := j.turned(); found >= least {
		return j.doubt(j.isTurned())
	}
	return nil
}
