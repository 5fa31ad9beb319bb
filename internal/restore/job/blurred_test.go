package job

import (
	"os"
	"path/filepath"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// TestSharpAcrossMotion: photographs that a straight motion or a narrow blur left sharp have no dead pixels, and grey ones are found where a wide blur left nothing as sharp.
func TestSharpAcrossMotion(t *testing.T) {
	t.Parallel()
	straight := func(side int) *operator.Draw {
		d := &operator.Draw{Name: drawKernel, Dims: []int{side, side}, Data: make([]float32, side*side)}
		for i := range side {
			d.Data[side/2*side+i] = 1 / float32(side)
		}
		return d
	}
	for _, kernel := range []struct {
		name string
		task string
		draw *operator.Draw
		want int // dead pixels
	}{
		{"motion of 3 pixels", operator.MotionDeblur, straight(3), 0},
		{"motion of 9 pixels", operator.MotionDeblur, straight(9), 0},
		{"disk of 1 pixel", operator.GaussianDeblur, photograph.DrawDisk(1), 0},
		{"disk of 5 pixels", operator.GaussianDeblur, photograph.DrawDisk(5), 1},
	} {
		for _, name := range []string{"images/astronaut", "images/coffee", "unseen/windmill"} {
			const side, sigma = 128, 0.01
			data, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", name+".png"))
			must(t, err)
			whole, err := raster.Decode(data)
			must(t, err)
			img, err := raster.Fit(whole, "center_crop", side, 1)
			must(t, err)
			op, err := operator.Builtin().New(kernel.task, nil, operator.Shape{Channels: 3, Height: side, Width: side})
			must(t, err)
			j := &Job{Op: op, Item: item.Item{Task: kernel.task, Sigma: sigma}, draw: kernel.draw}
			j.Problem.Y = make([]float32, len(img.Pix))
			noise.Normal(j.Problem.Y, noise.Key{1}, noise.Measurement, 0, sigma)
			k := kernel.draw.Dims[0]
			for c := range 3 {
				for at := range side * side {
					for i, w := range kernel.draw.Data {
						y, x := min(side-1, max(0, at/side+i/k-k/2)), min(side-1, max(0, at%side+i%k-k/2))
						j.Problem.Y[c*side*side+at] += w * img.Plane(c)[y*side+x]
					}
				}
			}
			const dead = 40*side + 50
			for c := range 3 { // one that is neither black nor white
				if v := &j.Problem.Y[c*side*side+dead]; *v > 0 {
					*v -= 0.8
				} else {
					*v += 0.8
				}
			}
			found := 0
			for _, bad := range j.outliers() {
				if bad {
					found++
				}
			}
			if found != kernel.want {
				t.Errorf("%s of %s: %d dead pixels, want %d", name, kernel.name, found, kernel.want)
			}
		}
	}
}
