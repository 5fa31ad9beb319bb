package raster

import (
	"bytes"
	"errors"
	"image/png"
	"math"
	"slices"
	"testing"
)

func TestTo8(t *testing.T) {
	t.Parallel()
	for p := range 256 {
		if got := To8(float32(level8(uint8(p)))); int(got) != p {
			t.Fatalf("level %d became %d", p, got)
		}
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, tt := range []struct {
		v    float32
		want uint8
	}{{0, 128}, {-1, 0}, {1, 255}, {-1.5, 0}, {1.5, 255}, {nan, 0}, {inf, 255}, {-inf, 0}, {-0.9961, 0}, {-0.996, 1}} {
		if got := To8(tt.v); got != tt.want {
			t.Errorf("To8(%v) = %d, want %d", tt.v, got, tt.want)
		}
	}
}

// TestSamples8: values that are converted together have the samples of To8, next to all its steps, and no byte between them changes.
func TestSamples8(t *testing.T) {
	t.Parallel()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	values := []float32{nan, -nan, inf, -inf, math.MaxFloat32, -math.MaxFloat32, 1e10, -1e10, math.SmallestNonzeroFloat32, 0, float32(math.Copysign(0, -1))}
	for p := -10; p < 520; p++ {
		v := float32(p)/255 - 1 // a level or between two
		for range 5 {
			v = math.Nextafter32(v, -inf)
		}
		for range 10 {
			values = append(values, v)
			v = math.Nextafter32(v, inf)
		}
	}
	values = append(slices.Repeat(values, 30), values[:5]...) // more than a call of the processor's code takes, and a rest
	for n := range 40 {
		checkSamples(t, values[n:][:n], 1)
	}
	checkSamples(t, values, 1)
	checkSamples(t, values, 3)
}

func checkSamples(t *testing.T, values []float32, distance int) {
	t.Helper()
	got := bytes.Repeat([]byte{77}, distance*len(values)+1)
	want := slices.Clone(got)
	samples8(got, values, distance)
	for i, v := range values {
		want[i*distance] = To8(v)
	}
	for i, v := range want {
		if got[i] != v {
			t.Fatalf("byte %d of %d values at distance %d is %d, want %d", i, len(values), distance, got[i], v)
		}
	}
}

func TestEncodePNGRoundTrip(t *testing.T) {
	t.Parallel()
	for _, channels := range []int{1, 3} {
		img := New(channels, 16, 48)
		for i := range img.Pix {
			img.Pix[i] = float32(level8(uint8(i)))
		}
		data, err := EncodePNG(img)
		must(t, err)
		again, err := EncodePNG(img)
		if err != nil || !bytes.Equal(data, again) {
			t.Fatalf("two encodings differ, %v", err)
		}
		got, err := Decode(data)
		must(t, err)
		for c := range 3 {
			if want := img.Plane(min(c, channels-1)); !slices.Equal(got.Plane(c), want) {
				t.Fatalf("%d channels: channel %d changed", channels, c)
			}
		}
		cfg, err := png.DecodeConfig(bytes.NewReader(data))
		if err != nil || cfg.Width != 48 || cfg.Height != 16 {
			t.Fatalf("header %+v, %v", cfg, err)
		}
		if colourType := data[25]; channels == 3 && colourType != 2 {
			t.Errorf("PNG colour type %d, want 2 (RGB without alpha)", colourType)
		}
	}
}

func TestEncodePNGRejects(t *testing.T) {
	t.Parallel()
	broken := New(3, 2, 2)
	broken.Pix[7] = float32(math.NaN())
	for name, tt := range map[string]struct {
		img  *Image
		want error
	}{
		"NaN":          {broken, ErrNotFinite},
		"two channels": {New(2, 2, 2), ErrShape},
		"no pixels":    {New(3, 0, 2), ErrShape},
		"short buffer": {&Image{Channels: 3, Height: 2, Width: 2, Pix: make([]float32, 11)}, ErrShape},
	} {
		if _, err := EncodePNG(tt.img); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", name, err, tt.want)
		}
	}
}

func TestFinite(t *testing.T) {
	t.Parallel()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, tt := range []struct {
		values []float32
		index  int
		ok     bool
	}{
		{nil, -1, true},
		{[]float32{0, -1, math.MaxFloat32, math.SmallestNonzeroFloat32}, -1, true},
		{[]float32{0, nan, inf}, 1, false},
		{[]float32{0, 1, inf}, 2, false},
		{[]float32{-inf}, 0, false},
	} {
		if index, ok := Finite(tt.values); index != tt.index || ok != tt.ok {
			t.Errorf("Finite(%v) = %d, %v; want %d, %v", tt.values, index, ok, tt.index, tt.ok)
		}
	}
	for n := range 40 { // several blocks and a rest
		values := slices.Repeat([]float32{math.MaxFloat32, -math.MaxFloat32}, n)[:n]
		if index, ok := Finite(values); index != -1 || !ok {
			t.Errorf("%d large values: %d, %v", n, index, ok)
		}
		for at, v := range values {
			for _, bad := range []float32{nan, inf, -inf} {
				values[at] = bad
				if index, ok := Finite(values); index != at || ok {
					t.Errorf("%v at %d of %d values: %d, %v", bad, at, n, index, ok)
				}
			}
			values[at] = v
		}
	}
	large := make([]float32, 300_000)
	large[299_999] = nan
	if index, ok := Finite(large); index != 299_999 || ok {
		t.Errorf("NaN at the end of a large image: %d, %v", index, ok)
	}
}
