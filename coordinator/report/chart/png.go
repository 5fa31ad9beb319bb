package chart

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"math"

	"gonum.org/v1/plot/vg/vgimg"

	"ddiff/restore/raster"
)

// Resolution is that of the PNG files, in dots per inch.
const Resolution = 300

// PNG returns the chart as a PNG file that states its resolution.
func (c *Chart) PNG() ([]byte, error) {
	d := c.drawing()
	canvas := vgimg.NewWith(vgimg.UseWH(d.width, d.height), vgimg.UseDPI(Resolution))
	d.draw(canvas)
	file, err := raster.EncodeOpaque(canvas.Image().(*image.RGBA)) // vgimg makes one
	if err != nil {
		return nil, fmt.Errorf("write PNG: %w", err)
	}
	return withResolution(file), nil
}

// withResolution adds the chunk pHYs after the header.
func withResolution(data []byte) []byte {
	const header = 8 + 25 // signature and IHDR
	perMetre := uint32(math.Round(Resolution / 0.0254))
	chunk := []byte("\x00\x00\x00\x09pHYs")
	chunk = binary.BigEndian.AppendUint32(chunk, perMetre)
	chunk = binary.BigEndian.AppendUint32(chunk, perMetre)
	chunk = append(chunk, 1) // the unit is the metre
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
	out := append([]byte{}, data[:header]...)
	return append(append(out, chunk...), data[header:]...)
}
