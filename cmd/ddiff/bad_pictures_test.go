package main_test

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"testing"

	"ddiff/internal/restore/raster"
)

// animatedWebP is the beginning of an animation.
func animatedWebP() []byte {
	body := append([]byte("WEBPVP8X\x0a\x00\x00\x00\x02\x00\x00\x00\x0f\x00\x00\x0f\x00\x00"), "ANIM\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body))), body...)
}

// rgbJPEG is a JPEG file whose components are red, green and blue.
func rgbJPEG(t *testing.T) []byte {
	t.Helper()
	data := jpegFile(t, 10)
	at := bytes.Index(data, []byte{0xff, 0xc0})
	data[at+10], data[at+13], data[at+16] = 'R', 'G', 'B'
	return data
}

// array is a .npy of values from low to high.
func array(t *testing.T, low, high float32, shape ...int) []byte {
	t.Helper()
	n := 1
	for _, d := range shape {
		n *= d
	}
	values := make([]float32, n)
	for i := range values {
		values[i] = low + (high-low)*float32(i)/float32(max(1, n-1))
	}
	data, err := raster.EncodeNPY(shape, values)
	must(t, err)
	return data
}

// unfit is a file that restore refuses, with the task and the words of its line.
type unfit struct {
	name, file string
	data       []byte
	task       string
	parts      []string
}

// unfits are files that cannot be restored.
func unfits(t *testing.T) []unfit {
	t.Helper()
	return []unfit{
		{"empty", "empty.png", nil, "hdr", []string{"is an empty file"}},
		{"of one pixel", "dot.png", grey(1), "hdr", []string{"1×1 pixels is too small"}},
		{"of 40000×40000 pixels", "huge.png", withSize(grey(16), 40_000), "hdr", []string{"40000x40000 pixels, the limit is"}},
		{"animated", "film.webp", animatedWebP(), "hdr", []string{"is an animation; save one frame"}},
		{"text", "text.png", []byte("text"), "hdr", []string{"not a PNG, JPEG, TIFF, WebP, BMP or GIF image"}},
		{"not of the factor", "y.npy", array(t, -1, 1, 3, 5, 5), "super_resolution", []string{"20×20 pixels, the prior needs multiples of 8"}},
		{"of 0 to 255", "bytes.npy", array(t, 0, 255, 3, 16, 16), "hdr", []string{"between 0 and 255", "--measurement-range LOW,HIGH"}},
		{"of 0 to 1", "unit.npy", array(t, 0, 1, 3, 16, 16), "hdr", []string{"between 0 and 1", "--measurement-range 0,1"}},
		{"a picture of moduli", "moduli.png", grey(16), "phase_retrieval", []string{"its measurement is no picture; give the values of A(x) as .npy"}},
	}
}

// badPictures are pictures that restore refuses, and options that do not suit them.
func badPictures(t *testing.T) []badInput {
	t.Helper()
	base := []string{"restore", "--quiet", "--threads", "1", "--steps", "3"}
	var all []badInput
	for _, u := range unfits(t) {
		all = append(all, badInput{
			name: "restore/" + u.name, files: map[string][]byte{u.file: u.data}, code: 3, failed: 1, parts: append([]string{"failed: ", u.file}, u.parts...),
			args: append(base[:len(base):len(base)], u.file, "--task", u.task),
		})
	}
	add := func(name string, code, failed int, parts []string, args ...string) {
		files := map[string][]byte{
			"a.png": grey(16), "q.jpg": jpegFile(t, 10), "rgb.jpg": rgbJPEG(t), "even3.npy": array(t, -1, 1, 3, 16, 16), "even.npy": array(t, 0.0625, 0.0625, 4, 4), "none.npy": array(t, 0, 0, 3, 3), "dark.npy": array(t, 0, 0, 16, 16), "dark.png": blackPNG(t), "wide.npy": array(t, 1, 1, 8, 16), "sub/a.txt": []byte("x"), "x.txt": []byte("x"),
		}
		all = append(all, badInput{name: "restore/" + name, files: files, code: code, failed: failed, parts: parts, args: append(base[:len(base):len(base)], args...)})
	}
	add("kernel without light", 3, 1, []string{"failed: a.png (motion_deblur)", "none.npy", "its sum is 0"}, "a.png", "--task", "motion_deblur", "--kernel", "none.npy")
	for name, c := range map[string]struct {
		data []byte
		part string
	}{
		"of sum zero": {array(t, 0, 0, 3, 3), "its sum is 0, it must be 1"},
		"with NaN":    {array(t, float32(math.NaN()), 1, 3, 3), "k.npy"}, "wider than the reflection": {array(t, 1./1089, 1./1089, 33, 33), "is wider than the reflection of 16×16"},
	} {
		all = append(all, badInput{name: "restore/own kernel " + name, files: map[string][]byte{"a.png": grey(16), "k.npy": c.data}, code: 3, failed: 1, parts: []string{"failed: a.png (gaussian_deblur)", c.part},
			args: append(base[:len(base):len(base)], "a.png", "--task", "gaussian_deblur", "--kernel", "k.npy")})
	}
	add("own kernel with std", 2, 0, []string{"task gaussian_deblur with a kernel: ", "std: the parameters are [size]"}, "a.png", "--task", "gaussian_deblur", "--kernel", "even.npy", "--param", "std=3")
	add("own kernel with ddrm", 2, 0, []string{"ddrm cannot restore task gaussian_deblur", "which a kernel from a file does not have", "methods that can: "}, "a.png", "--task", "gaussian_deblur", "--kernel", "even.npy", "--method", "ddrm")
	add("mask without observed pixels", 3, 1, []string{"failed: a.png", "no pixel is observed"}, "a.png", "--task", "inpaint_random", "--mask", "dark.npy")
	add("black mask", 3, 1, []string{"failed: a.png", "no pixel is observed"}, "a.png", "--task", "inpaint_box", "--mask", "dark.png")
	add("picture without quality", 3, 1, []string{"failed: a.png (jpeg)", "does not state the quality; give --param quality=VALUE"}, "a.png", "--task", "jpeg")
	add("array without quality", 3, 1, []string{"failed: even3.npy (jpeg)", "does not state the quality"}, "even3.npy", "--task", "jpeg", "--measurement-range", "-1,1")
	add("another quality", 3, 1, []string{"failed: q.jpg (jpeg)", "has the quality 10, and 30 is given; remove quality"}, "q.jpg", "--task", "jpeg", "--param", "quality=30")
	add("other subsampling", 3, 1, []string{"failed: q.jpg (jpeg)", "has the subsampling 2, and 0 is given"}, "q.jpg", "--task", "jpeg", "--param", "subsampling=0")
	add("quality of 101", 2, 0, []string{"--param quality=101", "outside integers in [1, 100]"}, "q.jpg", "--task", "jpeg", "--param", "quality=101")
	add("JPEG of red, green and blue", 3, 1, []string{"failed: rgb.jpg", "stores red, green and blue, not YCbCr"}, "rgb.jpg", "--task", "jpeg")
	add("mask of another ratio", 3, 1, []string{"failed: a.png (inpaint)", "wide.npy", "it has 16×8 pixels, the image 16×16"}, "a.png", "--task", "inpaint", "--mask", "wide.npy")
	add("missing mask of inpaint", 2, 0, []string{"task inpaint needs the mask", "give --mask FILE"}, "a.png", "--task", "inpaint")
	add("unused kernel", 2, 0, []string{"--kernel", "task hdr does not use a kernel"}, "a.png", "--task", "hdr", "--kernel", "even.npy")
	add("mask without a sound pixel beside a kernel", 3, 1, []string{"failed: a.png (motion_deblur)", "dark.npy: no pixel is observed"}, "a.png", "--task", "motion_deblur", "--mask", "dark.npy", "--kernel", "even.npy")
	add("missing width", 2, 0, []string{"task gaussian_deblur needs the width of the blur", "--param std=auto, or std=N"}, "a.png", "--task", "gaussian_deblur")
	add("missing kernel", 2, 0, []string{"task motion_deblur needs the kernel", "give --kernel FILE"}, "a.png", "--task", "motion_deblur")
	add("missing mask", 2, 0, []string{"task inpaint_box needs the mask", "give --mask FILE"}, "a.png", "--task", "inpaint_box")
	add("kernel nowhere", 2, 0, []string{"--kernel nowhere.npy", "no such file"}, "a.png", "--task", "motion_deblur", "--kernel", "nowhere.npy")
	add("two tasks", 2, 0, []string{"give one --task NAME"}, "a.png", "--task", "hdr,super_resolution")
	add("unknown task", 2, 0, []string{"unknown task"}, "a.png", "--task", "hdrr")
	add("nowhere", 2, 0, []string{"nowhere.png", "no such file"}, "nowhere.png", "--task", "hdr")
	add("not a picture", 2, 0, []string{"x.txt: neither a picture nor a .npy file"}, "x.txt", "--task", "hdr")
	add("folder without pictures", 2, 0, []string{"no picture found"}, "sub", "--task", "hdr")
	add("range in the wrong order", 2, 0, []string{"--measurement-range", "is no range"}, "a.png", "--task", "hdr", "--measurement-range", "255,0")
	add("range of a picture", 3, 1, []string{"failed: a.png (hdr)", "after black and white at the numbers 0 and 2 of the file; correct --measurement-range"},
		"a.png", "--task", "hdr", "--measurement-range", "0,2")
	add("range of moduli", 2, 0, []string{"--measurement-range: task phase_retrieval does not use it", "has the values of A(x); remove it"}, "even3.npy", "--task", "phase_retrieval", "--measurement-range", "0,255")
	list := map[string][]byte{"l.csv": []byte("image,task\na.png,hdr\n"), "a.png": grey(16), "blur.onnx": read(t, learnedBlur)}
	all = append(all, failing("list/range of a simulated row", list, []string{"a (hdr): l.csv:2: task hdr, method ddiff: --measurement-range: it is for measurements, and the row has none; remove it"},
		"--images", "l.csv", "--task", "hdr", "--measurement-range", "0,255"))
	list = maps.Clone(list)
	list["l.csv"], list["dark.npy"] = []byte("image,mask\na.png,dark.npy\n"), array(t, 0, 1, 16, 16)
	all = append(all,
		failing("list/mask with an operator file", list, []string{"a (blur): l.csv:2: task blur, method ddiff: task blur does not use a mask, it uses a kernel; remove the mask"}, "--images", "l.csv", "--operator", "blur.onnx"),
		refused("list/range with an operator file", list, 2, []string{"--measurement-range: task blur does not use it: its operator is a file"}, "--images", "l.csv", "--operator", "blur.onnx", "--measurement-range", "0,255"))
	add("range of words", 2, 0, []string{"--measurement-range", "is not LOW,HIGH"}, "a.png", "--task", "hdr", "--measurement-range", "black,white")
	return all
}

// blackPNG is a black picture of 16×16 pixels.
func blackPNG(t *testing.T) []byte {
	t.Helper()
	data, err := raster.EncodePNG(&raster.Image{Channels: 1, Height: 16, Width: 16, Pix: repeated(-1, 256)})
	must(t, err)
	return data
}

func repeated(v float32, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = v
	}
	return out
}
