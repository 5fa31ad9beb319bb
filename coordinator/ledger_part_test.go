package coordinator

import (
	"errors"
	"reflect"
	"testing"

	"ddiff/manifest"
)

func testPart(t *testing.T) *part {
	t.Helper()
	p := &part{partHeader: partHeader{
		Campaign: "c", Stream: 5, Seq: 1 << 60, Windows: []partWindow{{Number: 3, Item: 12, Items: 4, Size: 99}},
	}}
	for i, e := range []partEntry{{}, {state: done}, {state: failed, round: 300, reason: "no image"}, {state: dead, round: 1, reason: "no image"}} {
		e.id, _ = parseIdentity(id(i))
		p.entries = append(p.entries, e)
	}
	return p
}

func TestPartRoundTrip(t *testing.T) {
	want := testPart(t)
	data, err := want.encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodePart(data, "c")
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if got.Schema != manifest.RecordSchema || len(got.Reasons) != 1 {
		t.Errorf("%+v", got.partHeader)
	}
	if _, err := decodePart(data, "d"); !errors.Is(err, errPart) {
		t.Errorf("the part of another campaign: %v", err)
	}
}

// TestDamagedPart changes and removes each byte of a part.
func TestDamagedPart(t *testing.T) {
	data, err := testPart(t).encode()
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		data[i] ^= 0x10
		if _, err := decodePart(data, "c"); !errors.Is(err, errPart) {
			t.Errorf("byte %d changed: %v", i, err)
		}
		data[i] ^= 0x10
		if _, err := decodePart(data[:i], "c"); !errors.Is(err, errPart) {
			t.Errorf("%d bytes: %v", i, err)
		}
	}
}
