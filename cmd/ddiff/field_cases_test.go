package main_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"ddiff/internal/restore/passport"
	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/raster/metadata"
	"ddiff/internal/restore/raster/tiff"
)

// fieldCase is a command as people give it, with files as they have them, and what becomes of it.
type fieldCase struct {
	name  string
	files map[string][]byte
	args  []string // of restore
	code  int
	says  []string                // parts of the output
	check func(dir string) string // of the written files; a text says what is wrong
}

const (
	photoData = "../../restore/picture/testdata/"
	tiffData  = "../../internal/restore/raster/tiff/testdata/"
)

// drawn returns a PNG file.
func drawn(t *testing.T, w, h int, at func(x, y int) color.NRGBA) []byte {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range w * h {
		img.SetNRGBA(i%w, i/w, at(i%w, i/w))
	}
	var out bytes.Buffer
	must(t, png.Encode(&out, img))
	return out.Bytes()
}

// fieldCases are the cases, and the words before the arguments of each. Their pictures and the prior are small, because only reading and writing matter.
func fieldCases(t *testing.T) (cases []fieldCase, restore []string) {
	prior := filepath.Join(t.TempDir(), "tiny.onnx")
	writePrior(t, prior, 3, card(3))
	restore = []string{"restore", "--steps", "3", "--threads", "1", "--prior", prior}
	const side = 32
	white, black, clear, red := color.NRGBA{255, 255, 255, 255}, color.NRGBA{0, 0, 0, 255}, color.NRGBA{}, color.NRGBA{255, 0, 0, 255}
	photograph := func(x, y int) color.NRGBA {
		return color.NRGBA{uint8(60 + 3*x), uint8(90 + 2*y), uint8(120 + x + y), 255}
	}
	scratch := func(x, y int) bool { return x == y }
	pick := func(in func(x, y int) bool, yes, no color.NRGBA) func(x, y int) color.NRGBA {
		return func(x, y int) color.NRGBA {
			if in(x, y) {
				return yes
			}
			return no
		}
	}
	stroke := func(x, y int) bool {
		return x == 8 && y == 2 || y == 3 && (x == 6 || x == 7) || y == 4 && (x == 4 || x == 5)
	}
	photo := drawn(t, side, side, photograph)
	camera, err := os.ReadFile(photoData + "camera.jpg")
	must(t, err)
	inks, err := os.ReadFile("../../internal/restore/raster/testdata/inks8.jpg")
	must(t, err)
	inTIFF := func(name string) []byte {
		data, err := os.ReadFile(tiffData + name)
		must(t, err)
		return data
	}
	kernel := drawn(t, 9, 9, pick(stroke, white, black))
	values := make([]float32, 81)
	for i := range values {
		if stroke(i%9, i/9) {
			values[i] = 0.2
		}
	}
	turned := slices.Clone(values)
	slices.Reverse(turned)
	npy := func(side int, values []float32) []byte {
		data, err := raster.EncodeNPY([]int{side, side}, values)
		must(t, err)
		return data
	}
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	w, err := z.Create("kernel.npy")
	must(t, err)
	_, err = w.Write(npy(9, values))
	must(t, err)
	must(t, z.Close())
	framed := make([]float32, 64*64)
	for i, v := range values {
		framed[(28+i/9)*64+28+i%9] = v
	}
	box4, box5 := slices.Repeat([]float32{1. / 16}, 16), make([]float32, 25)
	for i := range box5 {
		if i/5 < 4 && i%5 < 4 {
			box5[i] = 1. / 16
		}
	}
	pixels := func(path string) []float32 {
		data, err := os.ReadFile(path)
		must(t, err)
		p, err := raster.DecodePicture(data)
		must(t, err)
		return p.Image.Pix
	}
	format := func(name, want string) func(dir string) string {
		return func(dir string) string {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return err.Error()
			}
			if got := raster.FormatOf(data); got != want {
				return name + " is a " + got
			}
			return ""
		}
	}
	equal := func(a, b string) func(dir string) string {
		return func(dir string) string {
			if !slices.Equal(pixels(filepath.Join(dir, a)), pixels(filepath.Join(dir, b))) {
				return a + " and " + b + " differ"
			}
			return ""
		}
	}
	denoise := func(args ...string) []string { return append(args, "--task", "denoise", "--sigma", "0.05") }
	inpaint := func(args ...string) []string {
		return append([]string{"a.png", "--task", "inpaint", "--sigma", "0.05"}, args...)
	}
	with := func(name string, data []byte) map[string][]byte { return map[string][]byte{"a.png": photo, name: data} }
	masked := func(at func(x, y int) color.NRGBA) map[string][]byte { return with("m.png", drawn(t, side, side, at)) }
	observed := func(dir string) string {
		before, after := pixels(filepath.Join(dir, "a.png")), pixels(filepath.Join(dir, "a.restored.png"))
		for i, v := range before {
			if at := i % (side * side); !scratch(at%side, at/side) && after[i] != v {
				return "an observed pixel has changed"
			}
		}
		return ""
	}
	// A second command restores the picture, and out.png is compared with the answer.
	again := func(dir string, args ...string) string {
		deblur := []string{filepath.Join(dir, "a.png"), "--task", "motion_deblur", "--sigma", "0.05", "--out", filepath.Join(dir, "right.png")}
		e := ddiff(t, slices.Concat(restore, deblur, args)...)
		if e.code != 0 {
			return e.stderr
		}
		return equal("out.png", "right.png")(dir)
	}
	sameAs := func(other []byte) func(dir string) string {
		return func(dir string) string {
			write(t, filepath.Join(dir, "right.npy"), other)
			return again(dir, "--kernel", filepath.Join(dir, "right.npy"))
		}
	}
	deblur := func(kernel string) []string {
		return []string{"a.png", "--task", "motion_deblur", "--sigma", "0.05", "--kernel", kernel, "--out", "out.png"}
	}
	struck := func(c color.NRGBA) []byte {
		return drawn(t, side, side, func(x, y int) color.NRGBA {
			if scratch(x, y) {
				return c
			}
			return photograph(x, y)
		})
	}
	// What a mask drops changes nothing.
	alike := func(dir string) string {
		write(t, filepath.Join(dir, "a.png"), struck(white))
		return again(dir, "--kernel", filepath.Join(dir, "k.png"), "--mask", filepath.Join(dir, "m.png"), "--unchecked")
	}
	twelve := image.NewGray16(image.Rect(0, 0, side, side))
	for i := range side * side {
		twelve.SetGray16(i%side, i/side, color.Gray16{Y: uint16(4 * i)})
	}
	var deep bytes.Buffer
	must(t, png.Encode(&deep, twelve))
	wide, err := metadata.InsertPNG(photo, []metadata.PNGChunk{{Kind: "cICP", Data: []byte{12, 16, 0, 1}}}, nil)
	must(t, err)
	bomb := bytes.Clone(inTIFF("deflate.tif"))
	tiff.SetNumber(bomb, 0, tiff.TagWidth, 60_000)
	tiff.SetNumber(bomb, 0, tiff.TagHeight, 60_000)
	return []fieldCase{
		{"jfif", map[string][]byte{"x.jfif": camera}, denoise("x.jfif"), 0, nil, format("x.restored.jfif", "jpeg")},
		{"no extension", map[string][]byte{"x": camera}, denoise("x"), 0, nil, format("x.restored.jpg", "jpeg")},
		{"PNG called jpg", map[string][]byte{"x.jpg": photo}, denoise("x.jpg"), 0, nil, format("x.restored.png", "png")},
		{"HEIC", map[string][]byte{"x.heic": []byte("\x00\x00\x00\x18ftypheic\x00\x00\x00\x00")}, denoise("x.heic"), 3, []string{"it is a HEIC picture; convert it first, as with: heif-convert"}, nil},
		{"AVIF", map[string][]byte{"x.avif": []byte("\x00\x00\x00\x1cftypavif\x00\x00\x00\x00")}, denoise("x.avif"), 3, []string{"it is an AVIF picture; convert it first, as with: avifdec"}, nil},
		{"raw", map[string][]byte{"x.cr2": []byte("II*\x00\x10\x00\x00\x00CR\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00")}, denoise("x.cr2"), 3, []string{"a raw file of a camera; develop it first"}, nil},
		{"BigTIFF", map[string][]byte{"x.tif": inTIFF("bigtiff.tif")}, denoise("x.tif"), 0, nil, format("x.restored.tif", "tiff")},
		{"planes", map[string][]byte{"x.tif": inTIFF("planar.tif")}, denoise("x.tif"), 0, nil, format("x.restored.tif", "tiff")},
		{"CMYK", map[string][]byte{"x.tif": inTIFF("cmyk.tif")}, denoise("x.tif"), 0, []string{"converted to RGB without a profile"}, format("x.restored.tif", "tiff")},
		// The tiny prior does not restore this photograph.
		{"CMYK with its profile", map[string][]byte{"x.jpg": inks}, denoise("x.jpg", "--unchecked"), 0, []string{"converted to sRGB by its profile"}, func(dir string) string {
			if m := metadata.Read(read(t, filepath.Join(dir, "x.restored.jpg"))); m.Profile != nil {
				return "the profile of the inks is left"
			}
			return ""
		}},
		{"JPEG in TIFF", map[string][]byte{"x.tif": inTIFF("jpeg.tif")}, denoise("x.tif"), 0, nil, format("x.restored.tif", "tiff")},
		{"float", map[string][]byte{"x.tif": inTIFF("float.tif")}, denoise("x.tif"), 0, nil, func(dir string) string {
			if p := tiff.Bits(read(t, filepath.Join(dir, "x.restored.tif"))); p != 32 {
				return "the floating-point samples are gone"
			}
			return ""
		}},
		{"alpha", map[string][]byte{"x.tif": inTIFF("alpha.tif")}, denoise("x.tif", "--format", "png"), 0, []string{"restored as it looks over white"}, func(dir string) string {
			p, err := raster.DecodePicture(read(t, filepath.Join(dir, "x.restored.png")))
			if must(t, err); p.Alpha == nil {
				return "the transparency is gone"
			}
			return ""
		}},
		{"12 bits in 16", map[string][]byte{"x.png": deep.Bytes()}, denoise("x.png", "--measurement-range", "0,4095"), 0, nil, func(dir string) string {
			if v := slices.Max(pixels(filepath.Join(dir, "x.restored.png"))); v < -0.95 || v > -0.87 {
				return "the numbers are no longer those of 12 bits"
			}
			return ""
		}},
		{"camera", map[string][]byte{"x.jpg": camera}, denoise("x.jpg", "--quality", "90"), 0, nil, func(dir string) string {
			m := metadata.Read(read(t, filepath.Join(dir, "x.restored.jpg")))
			if !bytes.Contains(m.EXIF, []byte("Testmaker")) || !bytes.Contains(m.IPTC, []byte("A caption")) || m.XMP == nil || m.Profile == nil || m.DPI[0] != 300 {
				return "the metadata are gone"
			}
			return ""
		}},
		{"colours of a PNG", with("x.png", wide), denoise("x.png", "--format", "jpeg"), 0, []string{"the meaning of the colours is in cICP"}, format("x.restored.jpg", "jpeg")},
		{"strip", map[string][]byte{"x.jpg": camera}, denoise("x.jpg", "--strip"), 0, nil, func(dir string) string {
			file := read(t, filepath.Join(dir, "x.restored.jpg"))
			if m := metadata.Read(file); m.EXIF != nil || m.XMP != nil || m.IPTC != nil {
				return "metadata are left"
			}
			if p, err := passport.Read(file); err != nil || p.Item.Measurement.Path != "x.jpg" || bytes.Contains(file, []byte(dir)) {
				return fmt.Sprintf("the passport has %+v, %v", p.Item.Measurement, err)
			}
			return ""
		}},
		{"file as --out", with("x", nil), denoise("a.png", "--out", "new/b.jpg"), 0, nil, format("new/b.jpg", "jpeg")},
		{"file for several", map[string][]byte{"a.png": photo, "b.png": photo}, denoise("a.png", "b.png", "--out", "c.jpg"), 2, []string{"--out c.jpg is a file, and there are 2 pictures; give a folder"}, nil},
		{"unwritten format", with("x", nil), denoise("a.png", "--out", "c.gif"), 2, []string{"gif is not written; the formats are png, jpeg, tiff and webp"}, nil},
		{"cut JPEG", map[string][]byte{"x.jpg": camera[:len(camera)-200]}, denoise("x.jpg"), 3, []string{"failed: x.jpg", "truncated data"}, nil},
		{"bomb", map[string][]byte{"x.tif": bomb}, denoise("x.tif"), 3, []string{"failed: x.tif", "it has 1 of 5000 strips or tiles"}, nil},
		{"photograph as mask", with("m.png", photo), inpaint("--mask", "m.png"), 3, []string{"it is no black-and-white picture", "as in a photograph"}, nil},
		{"red strokes", masked(pick(scratch, red, white)), inpaint("--mask", "m.png"), 3, []string{"of its pixels have a colour"}, nil},
		{"inverted mask", masked(pick(scratch, white, black)), inpaint("--mask", "m.png"), 2, []string{"is it inverted? give --mask-shows lost if white shows the lost pixels, or --mask-shows kept"}, nil},
		{"mask of lost pixels", masked(pick(scratch, white, black)), inpaint("--mask", "m.png", "--mask-shows", "lost"), 0, []string{"mask m.png: 3.1 % of the pixels are lost, and filled"}, observed},
		{"mask of kept pixels", masked(pick(scratch, white, black)), inpaint("--mask", "m.png", "--mask-shows", "kept"), 0, []string{"mask m.png: 97 % of the pixels are lost, and filled"}, nil},
		{"mask", masked(pick(scratch, black, white)), inpaint("--mask", "m.png"), 0, nil, observed},
		{"erased photograph as mask", masked(func(x, y int) color.NRGBA {
			if scratch(x, y) {
				return clear
			}
			return photograph(x, y)
		}), inpaint("--mask", "m.png"), 0, []string{"its transparent pixels, 3.1 %, count as lost"}, observed},
		{"soft brush", masked(func(x, y int) color.NRGBA {
			v := uint8(min(255, 120*max(x-y, y-x)))
			return color.NRGBA{v, v, v, 255}
		}), inpaint("--mask", "m.png"), 0, []string{"soft edges", "which count as lost"}, nil},
		{"black kernel on white", with("k.png", drawn(t, 9, 9, pick(stroke, black, white))), deblur("k.png"), 0, []string{"a kernel is bright where the light went"}, sameAs(npy(9, values))},
		{"kernel on a transparent layer", with("k.png", drawn(t, 9, 9, pick(stroke, black, clear))), deblur("k.png"), 0, []string{"transparent layer"}, sameAs(npy(9, values))},
		{"kernel in an archive", with("k.npz", archive.Bytes()), deblur("k.npz"), 0, nil, sameAs(npy(9, values))},
		{"kernel in a frame", with("k.npy", npy(64, framed)), deblur("k.npy"), 0, nil, sameAs(npy(9, values))},
		{"even kernel", with("k.npy", npy(4, box4)), deblur("k.npy"), 0, []string{"pad it with zeros to odd sides, at the right and below for this one"}, sameAs(npy(5, box5))},
		{"mask of a blurred picture", map[string][]byte{"a.png": struck(red), "k.png": kernel, "m.png": drawn(t, side, side, pick(scratch, black, white))},
			append(deblur("k.png"), "--mask", "m.png", "--unchecked"), 0, nil, alike},
		{"mask without a kernel", map[string][]byte{"a.png": photo, "m.png": drawn(t, side, side, pick(scratch, black, white))},
			[]string{"a.png", "--task", "motion_deblur", "--sigma", "0.05", "--mask", "m.png"}, 2, []string{"needs the kernel of the pictures; give --kernel FILE"}, nil},
		{"dead pixels", map[string][]byte{"a.png": drawn(t, side, side, func(x, y int) color.NRGBA {
			if x%8 == 3 && y%8 == 5 {
				return white
			}
			return photograph(x, y)
		})}, denoise("a.png"), 0, []string{"16 pixels (1.6 %) differ from all of their neighbours as dead and hot ones do: they are left out"}, nil},
		{"MATLAB kernel", with("k.mat", []byte("MATLAB 5.0 MAT-file")), deblur("k.mat"), 3, []string{"it is a file of MATLAB; save its array as .npy"}, nil},
		{"kernel", with("k.png", kernel), deblur("k.png"), 0, nil, sameAs(npy(9, values))},
		{"kernel of a correlation", with("k.png", kernel), append(deblur("k.png"), "--kernel-form", "correlation"), 0, nil, sameAs(npy(9, turned))},
	}, restore
}

// TestFieldCases gives people's files and commands to restore. `make field-cases` counts them.
func TestFieldCases(t *testing.T) {
	t.Parallel()
	all, restore := fieldCases(t)
	var expected atomic.Int64
	t.Run("case", func(t *testing.T) {
		for _, c := range all {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				for name, data := range c.files {
					must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
					if data != nil {
						write(t, filepath.Join(dir, name), data)
					}
				}
				cmd := command(t, slices.Concat(restore, c.args)...)
				cmd.Dir = dir
				e := end(t, cmd)
				if e.code != c.code {
					t.Fatalf("exit code %d, want %d: %s", e.code, c.code, e.stderr)
				}
				for _, part := range c.says {
					if !strings.Contains(e.stderr, part) {
						t.Errorf("%q is missing in %s", part, e.stderr)
					}
				}
				if c.check != nil {
					if text := c.check(dir); text != "" {
						t.Error(text)
					}
				}
				if !t.Failed() {
					expected.Add(1)
				}
			})
		}
	})
	t.Logf("cases=%d as_expected=%d", len(all), expected.Load())
}
