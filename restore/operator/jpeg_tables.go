package operator

import (
	"fmt"
	"math"

	"ddiff/restore/raster"
)

// The tables of Rec. ITU-T T.81, annex K, row by row. They are those of quality 50.
func annexK() (luma, chroma [block * block]int) {
	luma = [block * block]int{
		16, 11, 10, 16, 24, 40, 51, 61,
		12, 12, 14, 19, 26, 58, 60, 55,
		14, 13, 16, 24, 40, 57, 69, 56,
		14, 17, 22, 29, 51, 87, 80, 62,
		18, 22, 37, 56, 68, 109, 103, 77,
		24, 35, 55, 64, 81, 104, 113, 92,
		49, 64, 78, 87, 103, 121, 120, 101,
		72, 92, 95, 98, 112, 100, 103, 99,
	}
	for i := range chroma {
		chroma[i] = 99
	}
	for i, row := range [][]int{{17, 18, 24, 47}, {18, 21, 26, 66}, {24, 26, 56}, {47, 66}} {
		copy(chroma[i*block:], row)
	}
	return luma, chroma
}

// jpegTables returns the quantisation tables of a quality from 1 to 100 as the Independent JPEG Group's encoder computes them, row
// by row.
func jpegTables(quality int) (luma, chroma [block * block]uint8) {
	scale := 200 - 2*quality
	if quality < 50 {
		scale = 5000 / quality
	}
	l, c := annexK()
	for i := range l {
		luma[i] = uint8(min(max((l[i]*scale+50)/100, 1), 255))
		chroma[i] = uint8(min(max((c[i]*scale+50)/100, 1), 255))
	}
	return luma, chroma
}

// statedByJPEG reads quality and subsampling of a JPEG file.
func statedByJPEG(file []byte) (Stated, error) {
	if !raster.IsJPEG(file) {
		return Stated{}, nil
	}
	h, err := raster.ReadJPEGHeader(file)
	if err != nil {
		return Stated{}, fmt.Errorf("%w quality: %w", ErrParam, err)
	}
	quality, equal := nearestQuality(h.Luma, h.Chroma)
	subsampling := chroma444
	switch {
	case h.Across == 1 && h.Down == 1:
	case h.Across == 2 && h.Down == 1:
		subsampling = chroma422
	case h.Across == 2 && h.Down == 2:
		subsampling = chroma420
	default:
		return Stated{}, fmt.Errorf("%w subsampling: the file has a chroma sample for %d×%d pixels, the task has 4:4:4, 4:2:2 and 4:2:0; give it as PNG with a quality", ErrParam, h.Across, h.Down)
	}
	s := Stated{Params: map[string]float64{"quality": float64(quality), "subsampling": float64(subsampling)}}
	if !equal {
		s.Inexact = fmt.Sprintf("the quantisation tables of the file are not those of a quality; the nearest is %d", quality)
	}
	return s, nil
}

// nearestQuality returns the quality whose tables are nearest to those of a file, by the mean absolute logarithm of the ratio of
// entries, and whether they are equal. chroma is nil for a grey file. Of qualities with equal tables it is the highest.
func nearestQuality(luma []uint16, chroma [][]uint16) (quality int, equal bool) {
	least := math.Inf(1)
	for q := 100; q >= 1; q-- {
		l, c := jpegTables(q)
		d := tableDistance(luma, l)
		for _, table := range chroma {
			d += tableDistance(table, c)
		}
		if d < least {
			least, quality = d, q
		}
	}
	return quality, least == 0
}

func tableDistance(a []uint16, b [block * block]uint8) float64 {
	d := 0.0
	for i, v := range a {
		d += math.Abs(math.Log(float64(v) / float64(b[i])))
	}
	return d
}
