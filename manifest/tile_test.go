package manifest

import (
	"encoding/json"
	"strings"
	"testing"

	"ddiff/internal/restore/prior"
	"ddiff/restore/item"
)

func tiledSpec(t *testing.T, lines string) (*Spec, error) {
	t.Helper()
	return Parse("c.yaml", []byte("name: c\ndataset: {path: images}\ntasks: [hdr]\n"+lines), "/data")
}

// TestTileField: tile is a word or a number, overlap needs tiles, and each other value is refused with its field.
func TestTileField(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]string{
		"tile: auto": "", "tile: off": "", "tile: 256": "", "tile: \"256\"": "", "tile: 256\noverlap: 0": "", "tile: auto\noverlap: 64": "",
		"tile: 8":                     "tile: 8 is out of range, want 16 to 4096",
		"tile: wide":                  `tile: "wide" is neither auto nor off nor a number of pixels`,
		"tile: 025":                   "neither auto nor off",
		"tile: 1.5":                   "tile: want auto, off, or a number of pixels",
		"overlap: 64":                 "overlap: there are no tiles; set tile to auto",
		"tile: off\noverlap: 64":      "overlap: there are no tiles",
		"tile: 256\noverlap: -8":      "overlap: -8 is out of range",
		"tile: 256\noverlap: quarter": "overlap: want an integer",
	} {
		_, err := tiledSpec(t, lines)
		checkError(t, lines, err, want)
	}
}

// TestTiles: the side and the overlap follow from the campaign and the prior.
func TestTiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lines          string
		auto, multiple int
		tile, overlap  int
		err            string
	}{
		{"", 256, 8, 0, 0, ""},
		{"tile: off", 256, 8, 0, 0, ""},
		{"tile: auto", 256, 8, 256, 64, ""},
		{"tile: 512", 256, 8, 512, 128, ""},
		{"tile: 96", 256, 32, 96, 32, ""}, // a quarter is less than the multiple
		{"tile: 128\noverlap: 16", 256, 8, 128, 16, ""},
		{"tile: 128\noverlap: 0", 256, 8, 128, 0, ""},
		{"tile: 100", 256, 8, 0, 0, "tile: 100 is not a multiple of 8, as the prior requires; use 104"},
		{"tile: 128\noverlap: 20", 256, 8, 0, 0, "overlap: 20 is not a multiple of 8, as the prior requires; use 24"},
		{"tile: 128\noverlap: 72", 256, 8, 0, 0, "overlap: 72 is out of range, want 0 to 64, half of the tile"},
	} {
		s, err := tiledSpec(t, c.lines)
		must(t, err)
		tile, overlap, err := s.Tiles(c.auto, c.multiple)
		if tile != c.tile || overlap != c.overlap || (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %d, %d, %v; want %d, %d, %q", c.lines, tile, overlap, err, c.tile, c.overlap, c.err)
		}
	}
}

// TestTileIdentity: an image that is larger than a tile has another identity with each tile and overlap; a smaller one, and one of a campaign
// without tiles, have the same as without the field.
func TestTileIdentity(t *testing.T) {
	t.Parallel()
	s, err := tiledSpec(t, "tile: auto")
	must(t, err)
	resolve := func(item.Task, bool, int, int) (json.RawMessage, map[string]float64, error) {
		return json.RawMessage(`{}`), nil, nil
	}
	expand := func(tile, overlap, width, height int) item.Item {
		e := NewExpander(s, strings.Repeat("a", 64), resolve)
		e.Tile, e.Overlap = tile, overlap
		items, failed := e.Expand(Row{Name: "x", Image: "x.png"}, Probe{ImageSHA256: strings.Repeat("b", 64), Width: width, Height: height}, 0)
		if len(failed) > 0 || len(items) != 1 || items[0].CheckID() != nil {
			t.Fatalf("expand: %v, %v", items, failed)
		}
		return items[0]
	}
	plain := expand(0, 0, 512, 300)
	for _, same := range []item.Item{expand(512, 64, 512, 300), expand(1024, 64, 512, 300)} {
		if same.ID != plain.ID || same.Tile != 0 || same.Overlap != 0 {
			t.Errorf("an image of one tile: %+v", same)
		}
	}
	seen := map[string]bool{plain.ID: true}
	for _, tiling := range [][2]int{{256, 64}, {256, 0}, {504, 64}, {128, 64}} {
		it := expand(tiling[0], tiling[1], 512, 300)
		if it.Tile != tiling[0] || it.Overlap != tiling[1] || seen[it.ID] {
			t.Errorf("tiles %v: %+v", tiling, it)
		}
		seen[it.ID] = true
		if it.Tile = 0; it.CheckID() == nil {
			t.Error("a worker that does not know tiles accepts the item")
		}
	}
	if a, b := plain, expand(256, 64, 512, 300); key(t, a.MeasurementKey) != key(t, b.MeasurementKey) || key(t, a.RunKey) != key(t, b.RunKey) {
		t.Error("tiles change the measurement or the noise")
	}
}

func key(t *testing.T, of func() ([32]byte, error)) [32]byte {
	t.Helper()
	k, err := of()
	must(t, err)
	return k
}

// TestUntiledMethods: a campaign whose images may have several tiles refuses a method that cannot restore them.
func TestUntiledMethods(t *testing.T) {
	t.Parallel()
	p, err := prior.Open(prior.Bundled)
	must(t, err)
	p.Card.MultipleOf = 8
	v := Catalogue{Prior: &p.Description}
	for lines, refused := range map[string]bool{
		"methods: [dps]": false, "methods: [dps]\ntile: off": false, "methods: [ddiff]\ntile: 128": false,
		"methods: [dps]\ntile: auto": false, // of images of 256 pixels
		"methods: [dps]\ntile: 128":  true, "methods: [ddiff, dps]\ntile: 128": true,
	} {
		s, err := tiledSpec(t, lines)
		must(t, err)
		if err := s.Validate(v); (err != nil) != refused || refused && !strings.Contains(err.Error(), "dps cannot restore images in tiles") {
			t.Errorf("%q: %v", lines, err)
		}
		if s.Dataset.Fit = item.FitPad; s.tiled() && strings.Contains(lines, "dps") && s.Validate(v) == nil {
			t.Errorf("%q with fit pad: accepted", lines)
		}
	}
	s, err := tiledSpec(t, "tile: 100")
	must(t, err)
	if err := s.Validate(v); err == nil || !strings.Contains(err.Error(), "tile: 100 is not a multiple of 8") {
		t.Errorf("a tile that the prior refuses: %v", err)
	}
}
