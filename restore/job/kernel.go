package job

import (
	"math"

	"ddiff/restore/operator/drawfile"
	"ddiff/restore/raster"
)

const (
	turnedKernel = "the turned kernel, numpy.rot90(k, 2): a convolution, as of SciPy or DeepInverse, needs it here"
	isTurned     = "the kernel turned by 180° explains the picture better; give " + turnedKernel
)

// turned compares a stored picture's kernel with the turned one: from least on it is turned, from −least on unsure, see [drawfile.Turned]. It is −∞ without a kernel.
func (j *Job) turned() (found, least float64) {
	y := j.blurredByKernel()
	if y == nil {
		return math.Inf(-1), 0
	}
	sigma := j.noise().Level()
	if found := j.estimate(); !math.IsNaN(found) { // a blurred picture has no texture to be taken for noise
		sigma = found
	}
	return drawfile.Turned(y, j.draw, sigma), drawfile.LeastTurned(sigma)
}

// blurredByKernel is a stored picture that the kernel of a file blurred linearly, or nil.
func (j *Job) blurredByKernel() *raster.Image {
	dims := j.Op.Measurement
	if j.Item.Measurement == nil || j.Item.Kernel == nil || !j.Op.Linear || len(dims) != 3 || j.draw == nil || j.Op.Own != nil {
		return nil
	}
	return &raster.Image{Channels: dims[0], Height: dims[1], Width: dims[2], Pix: j.Problem.Y}
}

// doubtKernel doubts a kernel that is turned by 180°, or twice as long as the blur of the picture. Compression with loss leaves blocks and erases frequencies, which look like either.
func (j *Job) doubtKernel() *Doubt {
	y := j.blurredByKernel()
	if y == nil || j.lossy {
		return nil
	}
	if drawfile.Long(y, j.draw) >= drawfile.LeastLong {
		return &Doubt{Text: "the kernel is longer than the blur of the picture, which one of half its size explains better; give a smaller kernel", Sigma: j.Item.Sigma}
	}
	if found, least := j.turned(); found >= least {
		return &Doubt{Text: isTurned, Sigma: j.Item.Sigma}
	}
	return nil
}
