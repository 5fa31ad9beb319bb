package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"ddiff/restore/item"
)

func testItem() item.Item {
	return item.Item{
		Campaign: "demo-00000000", Index: 3, Name: "cat",
		Image: &item.Source{Path: "cat.png", SHA256: strings.Repeat("ab", 32)},
		Width: 256, Height: 192, Fit: item.FitCenterCrop,
		Task: "gaussian_deblur", Params: map[string]float64{"size": 61, "std": 3},
		Sigma: 0.05, Seed: 42, Run: 1,
		Method: "ddiff", Solver: json.RawMessage(`{"steps":100,"gamma0":50}`),
		Prior: strings.Repeat("cd", 32),
	}
}

// keys returns the four digests of an item in hex.
func keys(t *testing.T, it item.Item) (id, measurement, operator, run string) {
	t.Helper()
	must(t, it.Identify())
	encode := func(key [32]byte, err error) string {
		must(t, err)
		return hex.EncodeToString(key[:])
	}
	return it.ID, encode(it.MeasurementKey()), encode(it.OperatorKey()), encode(it.RunKey())
}

// A change of any of these orphans every stored result, or changes every measurement and
// every noise: it must be meant, and SchemaVersion raised with it.
func TestIdentityGolden(t *testing.T) {
	t.Parallel()
	stored := testItem()
	stored.Image = nil
	stored.Measurement = &item.Source{Path: "y.npy", SHA256: strings.Repeat("12", 32)}
	stored.Mask = &item.Source{Path: "mask.png", SHA256: strings.Repeat("34", 32)}
	stored.Kernel = &item.Source{Path: "kernel.npy", SHA256: strings.Repeat("56", 32)}
	for _, tc := range []struct {
		name                           string
		item                           item.Item
		id, measurement, operator, run string
	}{
		{
			"simulated", testItem(),
			"87a692d54b401cd72d1d88978b0bf874ae02c7feaea4234c9b68858b3774d94f",
			"40f8fe2917f860b95237923da794b28589f5200509b41840f3848de263ac94cb",
			"d30c14e487285f665331428daadb381f243c7b2945acb8f714bae18de5e81ca7",
			"969489bcbf7489caf3a242aad5ab4d250d9b1ebf21d4dfdef5919c7685f3d9c7",
		},
		{
			"stored, with mask and kernel", stored,
			"cc7f063c43c60f138ba8767ed56e4d59788ba74a3e6a6fd721ae5c73edfb61b0",
			"4ebff3233e68f78846754ad377446692902834be7bd00ab0057826c35726bd8f",
			"eaf5316f6a9ecf4cbf8b5737cb10df3da85df9a252726f687abacacd4eea138f",
			"365afc42fc91fdf98eb6f99c0332ef09cba712fbf31923b74086dd4e14288e2f",
		},
	} {
		id, measurement, operator, run := keys(t, tc.item)
		if id != tc.id || measurement != tc.measurement || operator != tc.operator || run != tc.run {
			t.Errorf("%s:\nid          %s\nmeasurement %s\noperator    %s\nrun         %s", tc.name, id, measurement, operator, run)
		}
	}
}

// The canonical form, spelled out: anybody can compute the key with sha256sum.
func TestMeasurementKeyIsSHA256OfJSON(t *testing.T) {
	t.Parallel()
	it := testItem()
	text := `{"schema":1,"image":"` + strings.Repeat("ab", 32) + `","width":256,"height":192,"fit":"center_crop",` +
		`"task":"gaussian_deblur","params":{"size":61,"std":3},"sigma":0.05,"seed":42}`
	want := sha256.Sum256([]byte(text))
	if got, err := it.MeasurementKey(); err != nil || got != want {
		t.Errorf("MeasurementKey = %x, %v, want %x", got, err, want)
	}
}

func TestIdentityDependsOn(t *testing.T) {
	t.Parallel()
	id, measurement, operator, run := keys(t, testItem())
	for _, tc := range []struct {
		name   string
		change func(*item.Item)
		// which of the keys change
		id, measurement, operator, run bool
	}{
		{"campaign", func(it *item.Item) { it.Campaign = "other" }, false, false, false, false},
		{"index", func(it *item.Item) { it.Index = 9 }, false, false, false, false},
		{"name", func(it *item.Item) { it.Name = "dog" }, false, false, false, false},
		{"path", func(it *item.Item) { it.Image.Path = "/elsewhere/cat.png" }, false, false, false, false},
		{"solver spacing", func(it *item.Item) { it.Solver = json.RawMessage("{ \"steps\": 100,\n\"gamma0\": 50 }") }, false, false, false, false},
		{"empty mask", func(it *item.Item) { it.Mask = &item.Source{} }, false, false, false, false},
		{"run", func(it *item.Item) { it.Run = 2 }, true, false, false, true},
		{"method", func(it *item.Item) { it.Method = "hqs" }, true, false, false, false},
		{"solver", func(it *item.Item) { it.Solver = json.RawMessage(`{"steps":101,"gamma0":50}`) }, true, false, false, false},
		{"prior", func(it *item.Item) { it.Prior = strings.Repeat("ef", 32) }, true, false, false, false},
		{"precision", func(it *item.Item) { it.Precision = PrecisionFloat32 }, true, false, false, false},
		{"sigma", func(it *item.Item) { it.Sigma = 0.1 }, true, true, false, true},
		{"photons", func(it *item.Item) { it.Photons = 100 }, true, true, false, true},
		{"mark of an estimate", func(it *item.Item) { it.SigmaEstimated = true }, false, false, false, false},
		{"seed", func(it *item.Item) { it.Seed = 43 }, true, true, true, true},
		{"task", func(it *item.Item) { it.Task = "motion_deblur" }, true, true, true, true},
		{"parameter", func(it *item.Item) { it.Params["std"] = 2 }, true, true, true, true},
		{"size", func(it *item.Item) { it.Width = 128 }, true, true, true, true},
		{"fit", func(it *item.Item) { it.Fit = item.FitPad }, true, true, true, true},
		{"bytes", func(it *item.Item) { it.Image.SHA256 = strings.Repeat("00", 32) }, true, true, true, true},
		{"measurement", func(it *item.Item) { it.Measurement = &item.Source{SHA256: "1"} }, true, true, true, true},
		{"mask", func(it *item.Item) { it.Mask = &item.Source{SHA256: "1"} }, true, true, true, true},
		{"own kernel", func(it *item.Item) { it.OwnKernel = true }, true, true, true, true},
		{"kernel", func(it *item.Item) { it.Kernel = &item.Source{SHA256: "1"} }, true, true, true, true},
	} {
		it := testItem()
		tc.change(&it)
		gotID, gotMeasurement, gotOperator, gotRun := keys(t, it)
		for _, k := range []struct {
			name    string
			changed bool
			want    bool
		}{
			{"ID", gotID != id, tc.id},
			{"MeasurementKey", gotMeasurement != measurement, tc.measurement},
			{"OperatorKey", gotOperator != operator, tc.operator},
			{"RunKey", gotRun != run, tc.run},
		} {
			if k.changed != k.want {
				t.Errorf("%s: %s changed = %t, want %t", tc.name, k.name, k.changed, k.want)
			}
		}
	}
}

// An item for messages has no signature of an address, and the same identity.
func TestItemPublic(t *testing.T) {
	t.Parallel()
	it := testItem()
	it.Image.Path = "https://host/cat.png?X-Amz-Signature=secret"
	it.Kernel = &item.Source{Path: "s3://bucket/k.npy?region=eu&secret=x", SHA256: strings.Repeat("12", 32)}
	id, _, _, _ := keys(t, it)
	public := it.Public()
	publicID, _, _, _ := keys(t, public)
	if publicID != id || public.Image.Path != "https://host/cat.png" || strings.Contains(public.Kernel.Path, "secret") || public.Mask != nil {
		t.Errorf("%+v, image %+v, kernel %+v", public, public.Image, public.Kernel)
	}
	if !strings.Contains(it.Image.Path, "secret") {
		t.Error("the item itself changed")
	}
}

func TestIdentifyRefusesBrokenSolver(t *testing.T) {
	t.Parallel()
	it := testItem()
	it.Solver = json.RawMessage(`{"steps":`)
	if err := it.Identify(); err == nil {
		t.Errorf("identified as %s", it.ID)
	}
}
